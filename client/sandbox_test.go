package client_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

func TestSandboxCredential(t *testing.T) {
	e := &echo{data: `{"token":"sbx_secret","credential_id":"sandbox_1","scope":"sandbox:echo","production_data_access":false,"expires_at":"2026-11-20T10:30:00.000Z"}`}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c := newClient(t, server.URL) // without any credential
	credential, err := c.IssueSandboxCredential(t.Context(), "ada@harbour.example")
	if err != nil {
		t.Fatal(err)
	}
	if e.target != "POST /api/v1/sandbox/keys" || fmt.Sprint(e.body) != "map[email:ada@harbour.example]" {
		t.Errorf("asked %s with %v", e.target, e.body)
	}
	if credential.Token != "sbx_secret" || credential.Scope != "sandbox:echo" || credential.ExpiresAt.Minute() != 30 || credential.Response.RequestID != "req-1" {
		t.Errorf("got %+v", *credential)
	}
	for _, text := range []string{fmt.Sprint(credential), fmt.Sprintf("%+v", *credential), fmt.Sprintf("%#v", *credential)} {
		if strings.Contains(text, "secret") {
			t.Errorf("the token shows: %s", text)
		}
	}
	if _, err := c.IssueSandboxCredential(t.Context(), ""); err != nil || len(e.body) != 0 {
		t.Errorf("%v; sent %v", err, e.body)
	}
	if _, err := c.SandboxEcho(t.Context(), "a"); !errors.Is(err, client.ErrNoCredential) {
		t.Errorf("echo without a credential: %v", err)
	}
}

func TestSandboxEchoAndBatch(t *testing.T) {
	e, c := newEcho(t, `{"status":"sandbox_ok","echo":"a < b","credential_id":"sandbox_1"}`)
	one, err := c.SandboxEcho(t.Context(), "a < b")
	if err != nil || one.Echo != "a < b" || one.CredentialID != "sandbox_1" || e.target != "POST /api/v1/sandbox/echo" || fmt.Sprint(e.body) != "map[input:a < b]" {
		t.Errorf("%+v, %v; asked %s with %v", one, err, e.target, e.body)
	}
	e, c = newEcho(t, `{"status":"sandbox_ok","results":[{"index":0,"status":"sandbox_ok","echo":"a"},{"index":1,"status":"sandbox_ok","echo":""}]}`)
	batch, err := c.SandboxBatch(t.Context(), "a", "")
	if err != nil || len(batch.Results) != 2 || batch.Results[1].Index != 1 || batch.Results[0].Echo != "a" {
		t.Fatalf("%+v, %v", batch, err)
	}
	if e.target != "POST /api/v1/sandbox/batch" || fmt.Sprint(e.body) != "map[operations:[map[input:a] map[input:]]]" {
		t.Errorf("asked %s with %v", e.target, e.body)
	}
}
