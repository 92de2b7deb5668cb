package client

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"time"
)

// AgreementText is the text of agreement version 2026-11 that this package ships. Show it to the person who
// consents, then send its [TextSHA256].
//
//go:embed agreement.txt
var AgreementText string

// The version labels of AgreementText.
const (
	AgreementVersion = "2026-11"
	ConsentVersion   = "2026-11"
)

// Consent records who agreed to what, and when (contract 2.3). Every field is required; Accepted has to be true.
type Consent struct {
	Accepted            bool      `json:"accepted"`
	AgreementVersion    string    `json:"beta_agreement_version"`
	ConsentVersion      string    `json:"ai_readable_use_consent_version"`
	TextSHA256          string    `json:"text_hash_sha256"` // 64 lowercase hex digits
	ConsentingUserID    string    `json:"consenting_user_id"`
	ConsentingUserEmail string    `json:"consenting_user_email"`
	AcceptedAt          time.Time `json:"accepted_at"`
}

// TextSHA256 returns the SHA-256 of the exact bytes of a consent text as 64 lowercase hex digits.
func TextSHA256(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
