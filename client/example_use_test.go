package client_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

// harbour is a stand-in for https://custody.example that holds one document.
func harbour() (service *clienttest.Service, uploader *client.Client, uploadID string) {
	service = clienttest.NewService()
	uploader, err := client.New(service.URL, client.WithToken(clienttest.UploadToken))
	if err != nil {
		log.Fatal(err)
	}
	document := strings.NewReader("Pump 2 was overhauled in October.")
	transfer := client.NewTransfer("harbour", client.InitiateRequest{Filename: "record.txt", ContentType: "text/plain", SizeBytes: document.Size(), Consent: consent()})
	if _, err := (&client.Uploader{Client: uploader}).Upload(context.Background(), transfer, document); err != nil {
		log.Fatal(err)
	}
	if _, err := uploader.Follow(context.Background(), "harbour", transfer.UploadID, client.Retry{}, nil); err != nil {
		log.Fatal(err)
	}
	return service, uploader, transfer.UploadID
}

// An upload that broke off goes on with nothing but its transfer, kept as JSON, and the same file.
func ExampleUploader_Upload() {
	service := clienttest.NewService()
	defer service.Close()
	service.PartSizeBytes = 16
	c, err := client.New(service.URL, client.WithToken(clienttest.UploadToken))
	if err != nil {
		log.Fatal(err)
	}
	document := strings.NewReader("Pump 2 was overhauled in October.")
	transfer := client.NewTransfer("harbour", client.InitiateRequest{Filename: "record.txt", ContentType: "text/plain", SizeBytes: document.Size(), Consent: consent()})
	service.Inject("part", clienttest.Fault{}, clienttest.Fault{DropAfter: 3}) // the second part does not arrive
	uploader := client.Uploader{
		Client: c, Retry: client.Retry{Attempts: 1},
		Save: func(*client.Transfer) error { return nil }, // write it to a file; it holds no credential
	}
	_, err = uploader.Upload(context.Background(), transfer, document)
	var lost *client.NetworkError
	fmt.Println(errors.As(err, &lost), transfer.AcceptedBytes())

	if _, err := uploader.Upload(context.Background(), transfer, document); err != nil {
		log.Fatal(err)
	}
	fmt.Println(transfer.Completed, transfer.AcceptedBytes())
	// Output:
	// true 16
	// true 33
}

// A context is customer-submitted, unverified text. Text is ready for a model; what stands in it is data, never instructions.
func ExampleClient_AIContext() {
	service, _, uploadID := harbour()
	defer service.Close()
	reader, err := client.New(service.URL, client.WithToken(clienttest.ReaderToken))
	if err != nil {
		log.Fatal(err)
	}
	bounded, err := reader.AIContext(context.Background(), "harbour", uploadID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bounded.Context.BoundaryLabel)
	fmt.Println(bounded.Context.ContentTrust, bounded.Context.TokenCount, "of at most", bounded.Context.TokenLimit, "tokens")
	fmt.Println(bounded.Context.Excerpts[0].Text)
	// Output:
	// customer-submitted, unverified
	// untrusted 14 of at most 4096 tokens
	// Pump 2 was overhauled.
}

// A withdrawal leaves a signed receipt, which is verified without the service once its keys are kept.
func ExampleVerifyReceipt() {
	service, c, uploadID := harbour()
	defer service.Close()
	ctx := context.Background()
	gone, err := c.WithdrawUpload(ctx, "harbour", uploadID, client.WithdrawRequest{Reason: "no longer needed"})
	if err != nil {
		log.Fatal(err)
	}
	receipt, err := c.WithdrawalReceipt(ctx, "harbour", gone.WithdrawalReceiptID)
	if err != nil {
		log.Fatal(err)
	}
	keys, err := c.KeySet(ctx) // keep it beside the receipt
	if err != nil {
		log.Fatal(err)
	}

	proven, err := client.VerifyReceipt(receipt.SignedReceipt, keys)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(proven.UploadID == uploadID, proven.SizeBytes, proven.Deletions[0].Backend)
	_, err = client.VerifyReceipt(receipt.SignedReceipt[1:], keys)
	fmt.Println(errors.Is(err, client.ErrReceiptInvalid))
	// Output:
	// true 33 staging
	// true
}

// The evidence of every serving, newest first, whatever the number of pages.
func ExampleClient_AllRequestRecords() {
	service, _, uploadID := harbour()
	defer service.Close()
	ctx := context.Background()
	reader, err := client.New(service.URL, client.WithToken(clienttest.ReaderToken))
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if _, err := reader.AIContext(ctx, "harbour", uploadID); err != nil {
			log.Fatal(err)
		}
	}
	for record, err := range reader.AllRequestRecords(ctx, "harbour", client.RecordFilter{UploadID: uploadID, Limit: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.RecordID, record.Outcome)
	}
	// Output:
	// rec_3 served
	// rec_2 served
	// rec_1 served
}

// A credential as OAuth 2.0 client credentials; passing failures are repeated, mutations under one Idempotency-Key.
func ExampleWithClientCredentials() {
	service := clienttest.NewService()
	defer service.Close()
	c, err := client.New(service.URL,
		client.WithClientCredentials(clienttest.ReaderCredentialID, clienttest.ReaderToken, "metadata_read"),
		client.WithRetry(client.Retry{}))
	if err != nil {
		log.Fatal(err)
	}
	service.Inject("quota", clienttest.Fault{Status: 503})
	quota, err := c.Quota(context.Background(), "harbour")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(quota.AllowanceBytes, len(service.Calls("token")))
	// Output: 1073741824 1
}

// An event that the service signed is passed on once, in the order of its upload; what is forged never is.
func ExampleReceiver_ServeHTTP() {
	const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=" // as SetWebhook answered it
	server := httptest.NewServer(&client.Receiver{
		Secrets: []string{secret}, // two while it rotates
		Status: func(_ context.Context, e client.StatusChanged) error {
			fmt.Println(e.UploadID, e.Sequence, e.Status)
			return nil // an error has the event come again
		},
	})
	defer server.Close()

	event := `{"event_id":"evt_1","upload_id":"up_1","sequence":1,"status":"INITIATED","occurred_at":"2026-11-20T12:00:00Z"}`
	fmt.Println(deliver(server.URL, secret, event))
	fmt.Println(deliver(server.URL, secret, event))
	fmt.Println(deliver(server.URL, "whsec_"+strings.Repeat("A", 40), event))
	// Output:
	// up_1 1 INITIATED
	// 202
	// 409
	// 400
}

// deliver is what the service does.
func deliver(address, secret, event string) int {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "evt_1.%s.%s", at, event)
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(event))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("webhook-id", "evt_1")
	request.Header.Set("webhook-timestamp", at)
	request.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}
