package sandbox_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/accession/accession/internal/sandbox"
)

func TestInfoAndKeyInfo(t *testing.T) {
	s, err := sandbox.New(sandbox.Config{Key: key, Lifetime: 20 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	at := sandbox.Endpoints{Credential: "https://x.example/keys", Echo: "https://x.example/echo"}
	info := sandbox.Info{
		Environment: "sandbox", Status: "available", ProductionDataAccess: false,
		CredentialEndpoint: "https://x.example/keys", EchoEndpoint: "https://x.example/echo",
		CustomerUploads: false, AIContext: false,
	}
	keyInfo := sandbox.KeyInfo{
		Method: "POST", Endpoint: "https://x.example/keys", Free: true, ProductionDataAccess: false,
		Status: "available", AccountRequired: false, CredentialScope: "sandbox:echo",
	}
	for _, c := range []struct {
		name   string
		limits *sandbox.Limits
	}{
		{"with limits", &sandbox.Limits{MaxInputCharacters: 1000, MinOperations: 1, MaxOperations: 8, CredentialLifetime: 20 * time.Minute}},
		{"without", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			info.Limits, keyInfo.Limits = c.limits, c.limits
			if got := s.Info(at, c.limits != nil); !reflect.DeepEqual(got, info) {
				t.Errorf("Info = %+v, want %+v", got, info)
			}
			if got := s.KeyInfo(at, c.limits != nil); !reflect.DeepEqual(got, keyInfo) {
				t.Errorf("KeyInfo = %+v, want %+v", got, keyInfo)
			}
		})
	}
}
