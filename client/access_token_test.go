package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

func uploadCredentials() client.Option {
	return client.WithClientCredentials(clienttest.UploadCredentialID, clienttest.UploadToken)
}

func TestAccessTokensAreSharedAndRenewedOnce(t *testing.T) {
	service := newService(t)
	c := newClient(t, service.URL, uploadCredentials())
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := c.Quota(t.Context(), "harbour"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(service.Calls("token")); n != 1 {
		t.Errorf("%d tokens for 5 requests at once", n)
	}
	for _, call := range service.Calls("quota") {
		if call.Header.Get("x-api-key") != "" || !strings.HasPrefix(call.Header.Get("Authorization"), "Bearer access-") {
			t.Errorf("sent %v", call.Header)
		}
	}

	service.EndAccessTokens()
	if _, err := c.Quota(t.Context(), "harbour"); err != nil {
		t.Errorf("after the token was ended: %v", err)
	}
	if n := len(service.Calls("token")); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}

	// A part's body was read: the uploader has the file, and sends it again with the next token.
	service.Inject("part", clienttest.Fault{}, clienttest.Fault{Before: service.EndAccessTokens})
	document := strings.Repeat("Pump 2 was overhauled in October. ", 6000)
	uploader := client.Uploader{Client: c, Retry: client.Retry{First: time.Millisecond}}
	transfer := client.NewTransfer("harbour", client.InitiateRequest{Filename: "a", ContentType: "text/plain", SizeBytes: int64(len(document)), Consent: consent()})
	if _, err := uploader.Upload(t.Context(), transfer, strings.NewReader(document)); err != nil {
		t.Fatal(err)
	}
	if got := string(service.Bytes(transfer.UploadID)); got != document {
		t.Error("other bytes arrived")
	}
	if n := len(service.Calls("token")); n != 3 {
		t.Errorf("%d tokens, want 3", n)
	}
}

func TestAccessTokensOfARefusedCredential(t *testing.T) {
	service := newService(t)
	c := newClient(t, service.URL, client.WithClientCredentials(clienttest.UploadCredentialID, clienttest.ReaderToken), client.WithRetry(client.Retry{First: time.Millisecond}))
	_, err := c.Quota(t.Context(), "harbour")
	var refusal *client.Error
	if !errors.As(err, &refusal) || refusal.Status != 401 || refusal.Code != "invalid_client" || strings.Contains(err.Error(), clienttest.ReaderToken) {
		t.Errorf("got %v", err)
	}
	if len(service.Calls("token")) != 1 || len(service.Calls("quota")) != 0 {
		t.Errorf("asked %v", service.Calls(""))
	}

	// A new token that is refused is not exchanged again and again.
	service.Inject("quota", clienttest.Fault{Status: 401, Code: "credential_invalid"})
	fresh := newClient(t, service.URL, uploadCredentials())
	if _, err := fresh.Quota(t.Context(), "harbour"); !errors.As(err, &refusal) || refusal.Code != "credential_invalid" {
		t.Errorf("got %v", err)
	}
	if n := len(service.Calls("token")); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}
	if text := fmt.Sprintf("%v %+v %#v", fresh, fresh, fresh); strings.Contains(text, clienttest.UploadToken) {
		t.Errorf("a client prints its credential: %s", text)
	}
	if _, err := client.New(service.URL, client.WithToken("acc_x"), uploadCredentials()); err == nil {
		t.Error("two credentials were accepted")
	}
	for _, option := range []client.Option{client.WithClientCredentials("", "x"), client.WithClientCredentials("x", ""), client.WithClientCredentials("x", "a b")} {
		if _, err := client.New(service.URL, option); err == nil {
			t.Error("a credential that is none was accepted")
		}
	}
}

func TestAccessTokenIsWaitedForNoLongerThanItsContext(t *testing.T) {
	service := newService(t)
	held := make(chan struct{})
	asked := make(chan struct{})
	service.Inject("token", clienttest.Fault{Before: func() { close(asked); <-held }})
	c := newClient(t, service.URL, uploadCredentials())
	first := make(chan error)
	go func() {
		_, err := c.Quota(t.Context(), "harbour")
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Quota(ctx, "harbour"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(held)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestWithRetryRepeatsWithTheSameKey(t *testing.T) {
	service := newService(t)
	var told []error
	retry := client.Retry{Attempts: 3, First: time.Millisecond, Notify: func(err error, _ time.Duration) { told = append(told, err) }}
	c := newClient(t, service.URL, client.WithToken(clienttest.UploadToken), client.WithRetry(retry))
	request := client.InitiateRequest{Filename: "a", ContentType: "text/plain", SizeBytes: 9, Consent: consent()}
	service.Inject("initiate", clienttest.Fault{LoseAnswer: true}, clienttest.Fault{Status: 503})
	reservation, err := c.InitiateUpload(t.Context(), "harbour", request)
	if err != nil {
		t.Fatal(err)
	}
	calls := service.Calls("initiate")
	if !reservation.Response.Replayed || service.Uploads() != 1 || len(calls) != 3 || calls[0].IdempotencyKey != calls[2].IdempotencyKey || len(told) != 2 {
		t.Errorf("replayed %v, %d uploads, %d calls, told %v", reservation.Response.Replayed, service.Uploads(), len(calls), told)
	}
	// Attempts are bounded, and not multiplied by a Retry around them.
	unavailable := clienttest.Fault{Status: 503}
	service.Inject("quota", unavailable, unavailable, unavailable, unavailable, unavailable, unavailable)
	if _, err := c.Quota(t.Context(), "harbour"); err == nil || len(service.Calls("quota")) != 3 {
		t.Errorf("%d attempts, %v", len(service.Calls("quota")), err)
	}
	err = client.Retry{Attempts: 2, First: time.Millisecond}.Do(t.Context(), func(ctx context.Context) error {
		_, err := c.Quota(ctx, "harbour")
		return err
	})
	if err == nil || len(service.Calls("quota")) != 5 {
		t.Errorf("%d attempts, %v", len(service.Calls("quota")), err)
	}
	// What is final is asked once.
	service.Inject("status", clienttest.Fault{Status: 404, Code: "upload_not_found"})
	if _, err := c.UploadStatus(t.Context(), "harbour", "up_x", client.StatusOptions{}); err == nil || len(service.Calls("status")) != 1 {
		t.Errorf("%d attempts, %v", len(service.Calls("status")), err)
	}
}
