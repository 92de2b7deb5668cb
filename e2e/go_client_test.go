package e2e

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// The Go client does a document's whole way by access tokens alone; one that is revoked on the way is exchanged for the next.
func TestGoClientByAccessTokens(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--part-size-bytes", "65536"}})
	var sent []string // Authorization headers
	web := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("x-api-key") != "" {
			t.Error("the credential itself was sent")
		}
		sent = append(sent, r.Header.Get("Authorization"))
		return http.DefaultTransport.RoundTrip(r)
	})}
	as := func(known oauthClient) *client.Client {
		c, err := client.New(s.url, client.WithClientCredentials(known.id, known.secret), client.WithRetry(client.Retry{}), client.WithHTTPClient(web))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	known := s.oauthClient("harbour", "solution_company_upload")
	uploader := client.Uploader{Client: as(known), Retry: client.Retry{First: time.Millisecond}}
	revoked := false
	uploader.Save = func(transfer *client.Transfer) error {
		if len(transfer.Parts) == 2 && !revoked {
			revoked = true
			last := strings.TrimPrefix(sent[len(sent)-1], "Bearer ")
			answer, err := http.PostForm(s.url+"/oauth/revoke", url.Values{"token": {last}, "client_id": {known.id}, "client_secret": {known.secret}})
			if err != nil {
				return err
			}
			return answer.Body.Close()
		}
		return nil
	}
	content := bytes.Repeat([]byte("Pump 2 was overhauled in October.\n"), 5000)
	transfer := client.NewTransfer("harbour", client.InitiateRequest{
		Filename: "record.txt", ContentType: "text/plain", SizeBytes: int64(len(content)),
		Consent: client.Consent{Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.ConsentVersion,
			TextSHA256: client.TextSHA256([]byte(client.AgreementText)), ConsentingUserID: "user-7", ConsentingUserEmail: "ada@harbour.example"},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := uploader.Upload(ctx, transfer, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if status, err := uploader.Client.Follow(ctx, "harbour", transfer.UploadID, client.Retry{}, nil); err != nil || status.Status != client.StatusReady {
		t.Fatalf("%+v, %v", status, err)
	}
	reader := as(s.oauthClient("harbour", "ai_reader"))
	served, err := reader.AIContext(ctx, "harbour", transfer.UploadID)
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for record, err := range reader.AllRequestRecords(ctx, "harbour", client.RecordFilter{UploadID: transfer.UploadID}) {
		if records++; err != nil || record.RecordID != served.RecordID {
			t.Errorf("record %+v, %v", record, err)
		}
	}
	gone, err := uploader.Client.WithdrawUpload(ctx, "harbour", transfer.UploadID, client.WithdrawRequest{})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := uploader.Client.WithdrawalReceipt(ctx, "harbour", gone.WithdrawalReceiptID)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := uploader.Client.KeySet(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.VerifyReceipt(receipt.SignedReceipt, keys); err != nil || records != 1 {
		t.Errorf("receipt: %v, records: %d", err, records)
	}
	tokens := map[string]bool{}
	for _, header := range sent {
		if header != "" {
			tokens[header] = true
		}
	}
	if len(tokens) != 3 { // the uploader's two, the reader's one
		t.Errorf("%d access tokens", len(tokens))
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
