package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

const searchAuditPath = "/admin/audit"

// action is what an audit line says was done.
type action string

func (action) Schema(huma.Registry) *huma.Schema {
	return text(1, 64, `^[a-z_]+$`, "What was done, such as withdrawal_accepted or credential_issued.")
}

type searchAuditInput struct {
	OrgID        orgID        `query:"org_id" doc:"Left out: every organization, and the installation itself."`
	UploadID     uploadID     `query:"upload_id"`
	CredentialID credentialID `query:"credential_id" doc:"Who did it; admin: the administrator, retention: a retention that ended."`
	Action       action       `query:"action"`
	Since        sinceTime    `query:"since" doc:"Lines of that time and later."`
	Until        sinceTime    `query:"until" doc:"Lines from before that time."`
	Limit        int          `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor       string       `query:"cursor" maxLength:"256" doc:"next_cursor of the page before, with the same filters."`
}

type auditPage struct {
	Lines      []chainLine `json:"lines" nullable:"false" doc:"Newest first, each with its position in its organization's chain."`
	NextCursor string      `json:"next_cursor" doc:"Empty on the last page."`
}

func (s chains) mountSearch(d *door) {
	mount(d, operation{
		id: custody.OpSearchAudit, method: http.MethodGet, path: searchAuditPath, tag: "evidence",
		summary: "Search the audit logs", doc: "Over all organizations, newest first. What is given has to fit together: a line is found that fits every filter. Nothing is ever missing because an upload was " +
			"withdrawn or a credential revoked. To prove that a log is whole, read its chain.",
		answers: map[int]reflect.Type{200: says[auditPage]()},
	}, s.search)
}

func (s chains) search(ctx context.Context, x *exchange, in *searchAuditInput) (answer, error) {
	q := custody.AuditQuery{
		OrgID: string(in.OrgID), UploadID: string(in.UploadID), CredentialID: string(in.CredentialID), Action: string(in.Action),
		Since: in.Since.inMillis(), Until: in.Until.inMillis(), Limit: in.Limit,
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return answer{}, invalid(field{"/query/until", "must be later than since"})
	}
	if in.Cursor != "" {
		before, ok := readCursor(in.Cursor)
		if !ok {
			return answer{}, invalid(field{"/query/cursor", "expected the next_cursor of a page before"})
		}
		q.Before = before
	}
	found, next, err := s.room.Search(ctx, x.caller, q)
	if err != nil {
		return answer{}, err
	}
	page := auditPage{Lines: make([]chainLine, len(found))}
	for i, l := range found {
		page.Lines[i] = chainLine{Position: l.Position, Audit: l.Audit}
	}
	if next.ID != "" {
		page.NextCursor = writeCursor(next.At.UnixMilli(), next.ID)
	}
	return respond(page)
}

func writeCursor(ms int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(ms, 10) + " " + id))
}

// readCursor takes what writeCursor makes, in its one spelling.
func readCursor(cursor string) (custody.AuditPosition, bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	at, id, found := strings.Cut(string(b), " ")
	ms, wrong := strconv.ParseInt(at, 10, 64)
	if err != nil || wrong != nil || !found || ms < 0 || id == "" || cursor != writeCursor(ms, id) || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' }) {
		return custody.AuditPosition{}, false
	}
	return custody.AuditPosition{At: time.UnixMilli(ms), ID: id}, true
}

// inMillis is the first time that is kept and not before s; zero where s is not given. What is kept is of whole milliseconds and
// after 1970.
func (s sinceTime) inMillis() time.Time {
	t, err := time.Parse(time.RFC3339, string(s)) // resolved; only an empty one fails
	if err != nil {
		return time.Time{}
	}
	if t = t.Add(time.Millisecond - 1).Truncate(time.Millisecond); t.Before(time.UnixMilli(0)) {
		return time.UnixMilli(0)
	}
	return t
}
