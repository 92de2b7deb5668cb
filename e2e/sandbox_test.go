package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// The sandbox of the real service, through the client: it works without an account and opens nothing else.
func TestSandbox(t *testing.T) {
	s := start(t, options{})
	stranger, err := client.New(s.url)
	if err != nil {
		t.Fatal(err)
	}
	credential, err := stranger.IssueSandboxCredential(t.Context(), "ada@example.org")
	if err != nil {
		t.Fatal(err)
	}
	trial, err := client.New(s.url, client.WithToken(credential.Token))
	if err != nil {
		t.Fatal(err)
	}
	input := strings.Repeat("ü", 1000)
	if echo, err := trial.SandboxEcho(t.Context(), input); err != nil || echo.Echo != input || echo.CredentialID != credential.CredentialID {
		t.Errorf("%+v, %v", echo, err)
	}
	if batch, err := trial.SandboxBatch(t.Context(), "one", input); err != nil || len(batch.Results) != 2 || batch.Results[1].Echo != input {
		t.Errorf("%+v, %v", batch, err)
	}
	var refusal *client.Error
	if _, err := trial.Quota(t.Context(), "org"); !errors.As(err, &refusal) || refusal.Status != 401 {
		t.Errorf("the sandbox credential opens more: %v", err)
	}
	if strings.Contains(s.log.String(), "ada@example.org") || strings.Contains(s.log.String(), credential.Token) {
		t.Error("the log holds the address or the token")
	}
}
