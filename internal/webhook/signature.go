package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// newSecret is what a receiver verifies with: random bytes, shown as whsec_ and base64. (Standard Webhooks 1.0.)
func newSecret() []byte {
	secret := make([]byte, secretBytes)
	rand.Read(secret)
	return secret
}

func shown(secret []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(secret) }

// sign makes the webhook-signature header: one signature per secret, separated by spaces.
func sign(secrets [][]byte, id string, at time.Time, body []byte) (string, error) {
	if len(secrets) == 0 {
		return "", errors.New("no secret to sign with")
	}
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		if len(secret) < secretBytes { // the library signs with an empty one too
			return "", errors.New("a secret is too short to sign with")
		}
		w, err := standardwebhooks.NewWebhookRaw(secret)
		if err != nil {
			return "", err
		}
		if signatures[i], err = w.Sign(id, at, body); err != nil {
			return "", err
		}
	}
	return strings.Join(signatures, " "), nil
}
