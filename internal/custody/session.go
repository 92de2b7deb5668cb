package custody

import "time"

// AdminSeat is the seat of whoever signed in with the admin token; the other seats are called after their credentials' roles.
const AdminSeat Role = "admin"

// Seat lets a browser that has signed in ask as one credential, with all that the credential may and is refused. A session has at
// most one per role.
type Seat struct {
	Role         Role
	CredentialID string
	OrgID        string  // empty for the administrator
	Scopes       []Scope // of the credential as it is now; not kept
	AdminProof   string  // of an AdminSeat alone: which admin token it was
	CreatedAt    time.Time
	ExpiresAt    time.Time
}

// Session is what a browser has signed in to.
type Session struct {
	Seats     []Seat    // at least one, oldest first
	ExpiresAt time.Time // of the last of them
}
