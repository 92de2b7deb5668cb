package tenant

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

// A person signs in to the portal with a credential or the admin token, and the browser gets a cookie in its place:
//
//	credential → cookie (random; its SHA-256 is kept) → seat → the credential, looked at anew with every request
//
// A seat is never more than its credential, and ends with it.

// sessionLifetime of a seat, if its credential does not end before.
const sessionLifetime = 8 * time.Hour

// SignIn gives a seat for a credential or the admin token. before is the cookie of the session that the browser has, or empty:
// its seats of other roles stay, under the new cookie, and it ends. Those of another organization do not: over plain HTTP somebody else
// can have planted the cookie, and what a person does must not reach a seat of his. Error: credential_invalid, as of Authenticate; for
// an access token too.
func (s *Service) SignIn(ctx context.Context, token, before string) (cookie string, session custody.Session, err error) {
	seat, err := s.seatFor(ctx, token)
	if err != nil {
		return "", custody.Session{}, err
	}
	cookie = rand.Text() + rand.Text()
	across := custody.AcrossOrganizations(ctx)
	var seats []custody.Seat
	err = s.store.InTx(across, func(tx Tx) error {
		seats = nil
		if before != "" {
			had, err := tx.TakeSeats(across, sessionHash(before), seat.CreatedAt)
			if err != nil {
				return err
			}
			for _, other := range had {
				if other.Role != seat.Role && s.mayStay(before, other, seat) {
					seats = append(seats, other)
				}
			}
		}
		seats = append(seats, seat)
		for i := range seats {
			if seats[i].Role == custody.AdminSeat {
				seats[i].AdminProof = s.adminProof(cookie)
			}
			if err := tx.InsertSeat(across, sessionHash(cookie), seats[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", custody.Session{}, err
	}
	session, err = s.session(ctx, cookie, seats)
	return cookie, session, err
}

// mayStay says whether a seat of the session before may be beside a new one.
func (s *Service) mayStay(before string, other, seat custody.Seat) bool {
	if other.Role == custody.AdminSeat { // whoever planted that has the admin token
		return s.provesAdmin(before, other)
	}
	return seat.Role == custody.AdminSeat || other.OrgID == seat.OrgID
}

// seatFor is a new seat of the credential that token belongs to.
func (s *Service) seatFor(ctx context.Context, token string) (custody.Seat, error) {
	now := s.now()
	seat := custody.Seat{CreatedAt: now, ExpiresAt: now.Add(sessionLifetime)}
	if s.isAdmin(token) {
		seat.Role, seat.CredentialID = custody.AdminSeat, custody.AdminCredentialID
		return seat, nil
	}
	if strings.Count(token, ".") == 2 { // a JWT has two, a credential none
		return custody.Seat{}, custody.Errorf(custody.CodeCredentialInvalid, "an OAuth access token does not sign in; use the credential itself")
	}
	c, err := s.credential(ctx, token)
	if err != nil {
		return custody.Seat{}, err
	}
	seat.Role, seat.CredentialID, seat.OrgID = c.Role, c.ID, c.OrgID
	if c.ExpiresAt.Before(seat.ExpiresAt) {
		seat.ExpiresAt = c.ExpiresAt
	}
	return seat, nil
}

// Session is what a cookie has signed in to, without the seats whose credentials have ended. Error: credential_invalid where that
// leaves none.
func (s *Service) Session(ctx context.Context, cookie string) (custody.Session, error) {
	seats, err := s.store.Seats(custody.AcrossOrganizations(ctx), sessionHash(cookie), s.now())
	if err != nil {
		return custody.Session{}, err
	}
	return s.session(ctx, cookie, seats)
}

func (s *Service) session(ctx context.Context, cookie string, seats []custody.Seat) (session custody.Session, err error) {
	for _, seat := range seats {
		c, err := s.seated(ctx, cookie, seat)
		var refused *custody.Error
		if errors.As(err, &refused) && refused.Code == custody.CodeCredentialInvalid {
			continue
		}
		if err != nil {
			return custody.Session{}, err
		}
		seat.Scopes = c.Scopes
		session.Seats = append(session.Seats, seat)
		if seat.ExpiresAt.After(session.ExpiresAt) {
			session.ExpiresAt = seat.ExpiresAt
		}
	}
	if len(session.Seats) == 0 {
		return custody.Session{}, ended()
	}
	return session, nil
}

// Seated says who asks from a seat of a session: exactly the caller that its credential would be. Error: credential_invalid for a
// session that is not there or has ended, a seat that it does not have, and one whose credential has ended.
func (s *Service) Seated(ctx context.Context, cookie string, role custody.Role) (custody.Caller, error) {
	seats, err := s.store.Seats(custody.AcrossOrganizations(ctx), sessionHash(cookie), s.now())
	if err != nil {
		return custody.Caller{}, err
	}
	if len(seats) == 0 {
		return custody.Caller{}, ended()
	}
	i := slices.IndexFunc(seats, func(seat custody.Seat) bool { return seat.Role == role })
	if i < 0 {
		return custody.Caller{}, custody.Errorf(custody.CodeCredentialInvalid, "the session has no seat as %s; sign in with such a credential too", role)
	}
	return s.seated(ctx, cookie, seats[i])
}

func (s *Service) seated(ctx context.Context, cookie string, seat custody.Seat) (custody.Caller, error) {
	if seat.Role == custody.AdminSeat {
		if !s.provesAdmin(cookie, seat) {
			return custody.Caller{}, ended()
		}
		return custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true}, nil
	}
	c, _, err := s.active(ctx, seat.OrgID, seat.CredentialID)
	if err != nil {
		return custody.Caller{}, err
	}
	if c.OrgID != seat.OrgID || c.Role != seat.Role {
		return custody.Caller{}, ended()
	}
	return custody.Caller{CredentialID: c.ID, OrgID: c.OrgID, Role: c.Role, Scopes: c.Scopes}, nil
}

// SignOut ends a session, everywhere; one that is not there is no error.
func (s *Service) SignOut(ctx context.Context, cookie string) error {
	ctx = custody.AcrossOrganizations(ctx)
	return s.store.InTx(ctx, func(tx Tx) error {
		_, err := tx.TakeSeats(ctx, sessionHash(cookie), s.now())
		return err
	})
}

func ended() error {
	return custody.Errorf(custody.CodeCredentialInvalid, "the session has ended; sign in again")
}

// sessionHash is all that is kept of a cookie.
func sessionHash(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return hex.EncodeToString(sum[:])
}

// adminProof tells which admin token a seat was given for, to whoever has the cookie: another token ends the seat, and the
// database alone is no help in guessing it.
func (s *Service) adminProof(cookie string) string {
	h := hmac.New(sha256.New, []byte(cookie))
	h.Write(s.admin[:])
	return hex.EncodeToString(h.Sum(nil))
}

func (s *Service) provesAdmin(cookie string, seat custody.Seat) bool {
	return hmac.Equal([]byte(seat.AdminProof), []byte(s.adminProof(cookie)))
}
