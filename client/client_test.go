package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

func newService(t *testing.T) *clienttest.Service {
	t.Helper()
	service := clienttest.NewService()
	t.Cleanup(service.Close)
	return service
}

func newClient(t *testing.T, url string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func consent() client.Consent {
	return client.Consent{
		Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.ConsentVersion,
		TextSHA256:       client.TextSHA256([]byte(client.AgreementText)),
		ConsentingUserID: "user-7", ConsentingUserEmail: "ada@harbour.example",
	}
}

func TestNewRefusesWhatIsNoServiceAddress(t *testing.T) {
	for _, address := range []string{
		"", "custody.example", "ftp://custody.example", "http://", "https://user:secret@custody.example",
		"https://custody.example?x=1", "https://custody.example#x", "http://custody.example:port",
	} {
		_, err := client.New(address)
		if err == nil {
			t.Errorf("New(%q) was accepted", address)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("New(%q) repeats the password: %v", address, err)
		}
	}
	if _, err := client.New("https://custody.example", client.WithToken("acc_x\nHost: evil")); err == nil || strings.Contains(err.Error(), "acc_x") {
		t.Errorf("a token with a line end: %v", err)
	}
}

func TestErrorCarriesWhatTheServiceSaid(t *testing.T) {
	service := newService(t)
	service.Inject("quota", clienttest.Fault{
		Status: 429, Code: "rate_limited", RetryAfter: 7,
		Details: map[string]any{"fields": []any{map[string]any{"path": "/a", "reason": "is b"}}},
	})
	_, err := newClient(t, service.URL, client.WithToken(clienttest.UploadToken)).Quota(t.Context(), clienttest.Org)
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("not a *client.Error: %v", err)
	}
	if refusal.Status != 429 || refusal.Code != "rate_limited" || refusal.RequestID == "" || refusal.TraceID == "" ||
		refusal.RetryAfter != 7*time.Second || len(refusal.Fields()) != 1 || refusal.Fields()[0].Path != "/a" {
		t.Errorf("lost something: %+v", refusal)
	}
	for _, part := range []string{"rate_limited", "429", refusal.RequestID} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestForeignAnswersAreNoSuccess(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a web page":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sign in") },
		"no data":           func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"request_id":"r"}`) },
		"data of no object": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"request_id":"r","data":"x"}`) },
		"a proxy's error":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway", http.StatusForbidden) },
	} {
		server := httptest.NewServer(handler)
		_, err := newClient(t, server.URL, client.WithToken("acc_token")).Quota(t.Context(), "harbour")
		server.Close()
		if err == nil || client.Retryable(err) || strings.Contains(err.Error(), "acc_token") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCredentialStaysWithItsHost(t *testing.T) {
	stolen := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("x-api-key") }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	_, err := newClient(t, server.URL, client.WithToken("acc_token"), client.WithHTTPClient(&http.Client{})).Quota(t.Context(), "harbour")
	var refusal *client.Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusTemporaryRedirect {
		t.Errorf("redirect: %v", err)
	}
	if len(stolen) != 0 {
		t.Error("the credential followed the redirect")
	}
}

func TestIDsCannotLeaveTheirPlaceInThePath(t *testing.T) {
	service := newService(t)
	c := newClient(t, service.URL, client.WithToken(clienttest.UploadToken))
	for _, id := range []string{"", ".", ".."} {
		if _, err := c.UploadStatus(t.Context(), clienttest.Org, id, client.StatusOptions{}); err == nil || !strings.Contains(err.Error(), "upload id") {
			t.Errorf("upload id %q: %v", id, err)
		}
		if _, err := c.Quota(t.Context(), id); err == nil || !strings.Contains(err.Error(), "organization") {
			t.Errorf("organization %q: %v", id, err)
		}
	}
	if len(service.Calls("")) != 0 {
		t.Error("a request was made")
	}
	var refusal *client.Error
	if _, err := c.UploadStatus(t.Context(), clienttest.Org, "../../quota?x=/#", client.StatusOptions{}); !errors.As(err, &refusal) || refusal.Code != "upload_not_found" {
		t.Errorf("an id with separators: %v", err)
	}
}

func TestRightTokenForEachOperation(t *testing.T) {
	service := newService(t)
	org := newClient(t, service.URL, client.WithToken(clienttest.UploadToken), client.WithAdminToken(clienttest.AdminToken))
	credential, err := org.IssueCredential(t.Context(), client.IssueRequest{OrgID: clienttest.Org, Role: client.RoleAIReader})
	if err != nil {
		t.Fatal(err)
	}
	if credential.Token != clienttest.ReaderToken || credential.Scope == "" || credential.ExpiresAt.IsZero() {
		t.Errorf("credential: %s, scope %q, expires %v", credential, credential.Scope, credential.ExpiresAt)
	}
	for _, text := range []string{fmt.Sprint(credential), fmt.Sprintf("%+v", *credential), fmt.Sprintf("%#v", *credential)} {
		if strings.Contains(text, clienttest.ReaderToken) {
			t.Errorf("printing shows the token: %s", text)
		}
	}
	if _, err := org.Quota(t.Context(), clienttest.Org); err != nil {
		t.Fatal(err)
	}
	issue, quota := service.Calls("issue")[0].Header, service.Calls("quota")[0].Header
	if issue.Get("x-api-key") != "" || quota.Get("Authorization") != "" {
		t.Error("a token went where it was not needed")
	}
	if _, err := newClient(t, service.URL).Quota(t.Context(), clienttest.Org); !errors.Is(err, client.ErrNoCredential) {
		t.Errorf("without a token: %v", err)
	}
}

func TestPartDigestAndReplay(t *testing.T) {
	service := newService(t)
	c := newClient(t, service.URL, client.WithToken(clienttest.UploadToken))
	request := client.InitiateRequest{Filename: "a.txt", ContentType: "text/plain", SizeBytes: 5, Consent: consent(), IdempotencyKey: "initiate-1"}
	request.Consent.AcceptedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first, err := c.InitiateUpload(t.Context(), clienttest.Org, request)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.InitiateUpload(t.Context(), clienttest.Org, request)
	if err != nil || again.UploadID != first.UploadID || !again.Response.Replayed || first.Response.Replayed {
		t.Errorf("replay: %+v, %v", again, err)
	}
	sum := client.TextSHA256([]byte("hello"))
	receipt, err := c.PutPart(t.Context(), clienttest.Org, first.UploadID, client.Part{Number: 1, Body: strings.NewReader("hello"), SizeBytes: 5, SHA256: sum})
	if err != nil || receipt.Status != client.StatusReceiving {
		t.Fatalf("part: %+v, %v", receipt, err)
	}
	raw := sha256.Sum256([]byte("hello"))
	if got, want := service.Calls("part")[0].Header.Get("Content-Digest"), "sha-256=:"+base64.StdEncoding.EncodeToString(raw[:])+":"; got != want {
		t.Errorf("Content-Digest %q, want %q", got, want)
	}
	if _, err := c.UploadStatus(t.Context(), clienttest.Org, first.UploadID, client.StatusOptions{ETag: `"2"`}); !errors.Is(err, client.ErrNotModified) {
		t.Errorf("known version: %v", err)
	}
}

func TestCancelledIsNotRetried(t *testing.T) {
	service := newService(t)
	ctx, cancel := context.WithCancel(t.Context())
	service.Inject("quota", clienttest.Fault{Before: cancel, DropAfter: -1})
	attempts := 0
	err := client.Retry{}.Do(ctx, func(ctx context.Context) error {
		attempts++
		_, err := newClient(t, service.URL, client.WithToken(clienttest.UploadToken)).Quota(ctx, clienttest.Org)
		return err
	})
	if !errors.Is(err, context.Canceled) || attempts != 1 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

func TestAnUntrustedCertificateIsFinal(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake is meant to fail
	server.StartTLS()
	defer server.Close()
	_, err := newClient(t, server.URL, client.WithToken("acc_token")).Quota(t.Context(), "harbour")
	if err == nil || client.Retryable(err) {
		t.Errorf("untrusted certificate: %v", err)
	}
}
