package custody

import "time"

// CredentialRotation asks for a successor of a credential: same organization, role and scopes. The old one verifies for
// Overlap more, or until its own end where that comes first.
type CredentialRotation struct {
	CredentialID string
	Overlap      time.Duration // 0 to MaxOverlap; 0 ends the old one at once
	ExpiresAt    time.Time     // of the successor; zero: 180 days from now
}

// Overlap of a rotation.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 30 * 24 * time.Hour
)

// RotatedCredential answers a CredentialRotation.
type RotatedCredential struct {
	Credential // the successor
	Replaces   Credential
}

// CredentialQuery selects credentials, newest first.
type CredentialQuery struct {
	OrgID  string // optional: of every organization
	Ended  bool   // revoked and expired ones too
	Before string // credential id to continue before; empty starts at the newest
	Limit  int    // 1 to 100
	At     time.Time
}

// States of a credential.
const (
	CredentialActive  = "active"
	CredentialExpired = "expired"
	CredentialRevoked = "revoked"
)

// State of c at that time. Only an active credential is accepted.
func (c Credential) State(at time.Time) string {
	switch {
	case !c.RevokedAt.IsZero():
		return CredentialRevoked
	case !at.Before(c.ExpiresAt):
		return CredentialExpired
	}
	return CredentialActive
}
