package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// sessions let a person's browser ask without a credential in it: one is exchanged for a cookie that no script can read. The
// cookie counts only beside the header that names a seat, and only in requests of this service's own pages: another site can send
// neither, so nothing that it makes a browser do is done. (RFC 6265; Fetch metadata.)
type sessions struct{ room Sessions }

// Sessions knows who has signed in.
type Sessions interface {
	// SignIn gives a cookie for a credential or the admin token, whose seat is the last; of the session before it takes over the administrator's and those
	// of the same organization.
	SignIn(ctx context.Context, token, before string) (cookie string, s custody.Session, err error)
	Session(ctx context.Context, cookie string) (custody.Session, error)
	// Seated is the caller that the seat's credential is.
	Seated(ctx context.Context, cookie string, role custody.Role) (custody.Caller, error)
	SignOut(ctx context.Context, cookie string) error
}

const (
	portalTag    = "portal"
	seatHeader   = "X-Accession-Seat"
	cookieLength = 52 // characters
)

type signInInput struct{ Body signInRequest }

type signInRequest struct {
	Credential string   `json:"credential" minLength:"1" maxLength:"4096" doc:"A tenant credential or the admin token. An OAuth access token does not sign in."`
	_          struct{} `additionalProperties:"false"`
}

type sessionView struct {
	Seats     []seatView `json:"seats" nullable:"false" doc:"At least one, and at most one per role."`
	ExpiresAt timestamp  `json:"expires_at" doc:"Of the last of the seats."`
}

type seatView struct {
	Role         string    `json:"role" enum:"solution_company_upload,ai_reader,admin" doc:"What X-Accession-Seat names."`
	OrgID        string    `json:"org_id" doc:"Empty for the administrator."`
	CredentialID string    `json:"credential_id"`
	Scopes       []string  `json:"scopes" nullable:"false"`
	ExpiresAt    timestamp `json:"expires_at"`
}

func viewSession(s custody.Session) sessionView {
	v := sessionView{ExpiresAt: timestamp{s.ExpiresAt}}
	for _, seat := range s.Seats {
		scopes := make([]string, len(seat.Scopes))
		for i, scope := range seat.Scopes {
			scopes[i] = string(scope)
		}
		v.Seats = append(v.Seats, seatView{string(seat.Role), seat.OrgID, seat.CredentialID, scopes, timestamp{seat.ExpiresAt}})
	}
	return v
}

func (s sessions) mount(d *door) {
	op := operation{path: "/portal/session", tag: portalTag, public: true, ownPages: true, failures: []int{401, 403}}

	op.name, op.method, op.body, op.class, op.summary = "createPortalSession", http.MethodPost, bodyJSON, ratelimit.Token, "Sign in to the portal"
	op.doc = "Exchanges a tenant credential, or the admin token, for a session cookie: HttpOnly, SameSite=Strict, good for 8 hours. Signing in again adds the credential's role to the session, " +
		"or replaces it, ends the seats of any other organization, and changes the cookie. The session dies with the credential. A program needs none: it sends its credential."
	op.answers = map[int]reflect.Type{200: says[sessionView]()}
	mount(d, op, func(ctx context.Context, x *exchange, in *signInInput) (answer, error) {
		cookie, session, err := s.room.SignIn(ctx, in.Body.Credential, x.cookie)
		if err != nil {
			return answer{}, err
		}
		newest := session.Seats[len(session.Seats)-1]
		x.caller.CredentialID, x.caller.OrgID = newest.CredentialID, newest.OrgID // for the log
		a, err := respond(viewSession(session))
		a.header = map[string]string{"Set-Cookie": d.cookie(cookie, 0).String()}
		return a, err
	})

	op.name, op.method, op.body, op.class, op.summary = "getPortalSession", http.MethodGet, bodyNone, "", "What the browser has signed in to"
	op.doc = "The seats of the session. Any operation that a seat's credential may use takes the cookie in the credential's place, where the header X-Accession-Seat names the seat's role."
	mount(d, op, func(ctx context.Context, x *exchange, _ *struct{}) (answer, error) {
		if x.cookie == "" {
			return answer{}, notSignedIn()
		}
		session, err := s.room.Session(ctx, x.cookie)
		if err != nil {
			return answer{}, err
		}
		return respond(viewSession(session))
	})

	op.name, op.method, op.summary = "deletePortalSession", http.MethodDelete, "Sign out of the portal"
	op.doc = "Ends the session, and takes the cookie back. Where there is no session the answer is the same."
	op.answers, op.failures = map[int]reflect.Type{204: nil}, []int{403}
	mount(d, op, func(ctx context.Context, x *exchange, _ *struct{}) (answer, error) {
		if x.cookie != "" {
			if err := s.room.SignOut(ctx, x.cookie); err != nil {
				return answer{}, err
			}
		}
		return answer{custody.Answer{Status: http.StatusNoContent}, map[string]string{"Set-Cookie": d.cookie("", -1).String()}}, nil
	})
}

// authenticateSeat finds out who asks from a seat of a session, if r names one.
func (d *door) authenticateSeat(x *exchange, r *http.Request) error {
	named := r.Header.Values(seatHeader)
	if len(named) > 1 || !slices.Contains([]custody.Role{custody.RoleSolutionCompanyUpload, custody.RoleAIReader, custody.AdminSeat}, custody.Role(named[0])) {
		return invalid(field{"/header/" + seatHeader, "must be one of solution_company_upload, ai_reader, admin"})
	}
	if len(r.Header.Values("X-Api-Key"))+len(r.Header.Values("Authorization")) > 0 {
		return custody.Errorf(custody.CodeInvalidRequest, "the request carries a credential and names the seat of a session; send one of the two")
	}
	if err := d.checkOwnPages(r); err != nil {
		return err
	}
	cookie := d.cookieOf(r)
	if cookie == "" {
		return notSignedIn()
	}
	c, err := d.tenants.Seated(r.Context(), cookie, custody.Role(named[0]))
	if err != nil {
		return err
	}
	c.RequestID, c.TraceID = x.requestID, x.traceID
	x.caller = c
	return nil
}

func notSignedIn() error {
	return custody.Errorf(custody.CodeAuthenticationRequired, "nobody is signed in; sign in at /portal")
}

// checkOwnPages refuses what another site's page made a browser send. Browsers say where a request comes from; what says nothing
// is no browser, or an old one, which sends neither JSON nor X-Accession-Seat to a strange site without asking.
func (d *door) checkOwnPages(r *http.Request) error {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" {
			return fromElsewhere()
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if !d.isOwnOrigin(origin, r.Host) {
			return fromElsewhere()
		}
	}
	return nil
}

// isOwnOrigin tells whether origin is the service's: of its base URL, or of the name that it was reached by, with the same scheme.
func (d *door) isOwnOrigin(origin, host string) bool {
	own, err := url.Parse(d.cfg.BaseURL)
	if err != nil {
		return false
	}
	scheme, at, _ := strings.Cut(origin, "://")
	usual := map[string]string{"http": ":80", "https": ":443"}[own.Scheme] // a browser leaves it out
	return scheme == own.Scheme && at != "" && (strings.EqualFold(at, strings.TrimSuffix(own.Host, usual)) || strings.EqualFold(at, host))
}

func fromElsewhere() error {
	return custody.Errorf(custody.CodeAccessDenied, "the request comes from a page of another site; use the service's own pages at the address of its base URL")
}

// cookieName is bound to this host and to TLS, where the service is reached by it.
func cookieName(baseURL string) string {
	if secure(baseURL) {
		return "__Host-accession_session"
	}
	return "accession_session"
}

func secure(baseURL string) bool { return strings.HasPrefix(baseURL, "https:") }

// cookie carries a session until the browser is closed; a negative age takes it back. When the session ends is the service's to say.
func (d *door) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName(d.cfg.BaseURL), Value: value, Path: "/", MaxAge: age, Secure: secure(d.cfg.BaseURL), HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// cookieOf is the cookie that r carries; empty where there is none, or more than one: whose the second is nobody knows.
func (d *door) cookieOf(r *http.Request) string {
	sent := r.CookiesNamed(cookieName(d.cfg.BaseURL))
	if len(sent) != 1 || len(sent[0].Value) != cookieLength {
		return ""
	}
	return sent[0].Value
}
