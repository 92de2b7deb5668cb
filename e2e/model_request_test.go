package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// modelOutcome is how an answer begins: status, and the code of an error.
type modelOutcome struct {
	status int
	code   string
}

// modelRequest is a request, and what the model says of it.
type modelRequest struct {
	op   string
	by   *modelCredential
	how  string // the credential is sent: key, bearer, or access token
	org  *modelOrg
	call call
	key  string // Idempotency-Key; empty where it has none
	same string // alike for requests that are the same request
	// early refuses what is not looked up under the key; the zero outcome where it does not. nil: never.
	early func() modelOutcome
	// judge says what the state of things makes of it: one outcome, or more where a document is in processing.
	judge func() []modelOutcome
	// apply checks an answer of success and notes its effect.
	apply func(t *rapid.T, r reply)
}

// modelKey is the scope of an Idempotency-Key.
type modelKey struct{ credential, op, key string }

type modelAnswer struct {
	request modelRequest
	reply   reply
}

var modelAdmin = &modelCredential{id: "admin", admin: true}

// do sends a request, compares its answer with what the model says, and returns it.
func (m *model) do(t *rapid.T, q modelRequest) reply {
	want, before := m.expect(q)
	r := m.ask(t, m.signed(t, q))
	got := modelOutcome{r.Status, r.Code}
	t.Logf("%s %s as %s %s, key %s: %v", q.call.method, q.call.path, q.by.name(), q.how, q.key, got)
	if !slices.Contains(want, got) {
		t.Fatalf("%s %s\nis answered %v, the model says %v: %s", q.call.method, q.call.path, got, want, r.Raw)
	}
	if before != nil {
		m.wantAgain(t, q, before, r)
		return r
	}
	if r.Header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("%s %s: a first answer says that it is a repeated one: %s", q.call.method, q.call.path, r.Raw)
	}
	if r.Status < 300 {
		q.apply(t, r)
		if q.key != "" {
			a := &modelAnswer{q, r}
			m.answers[modelKey{q.by.id, q.op, q.key}] = a
			m.given = append(m.given, a)
		}
	}
	return r
}

// expect is what may be answered, and the answer of before that has to come again, where one has.
func (m *model) expect(q modelRequest) ([]modelOutcome, *modelAnswer) {
	if no := refusalOf(q.op, q.by, q.org); no.status != 0 {
		return []modelOutcome{no}, nil
	}
	if q.early != nil {
		if no := q.early(); no.status != 0 {
			return []modelOutcome{no}, nil
		}
	}
	if q.key != "" {
		if a := m.answers[modelKey{q.by.id, q.op, q.key}]; a != nil && a.request.same == q.same {
			return []modelOutcome{{a.reply.Status, ""}}, a
		} else if a != nil {
			return []modelOutcome{{409, "idempotency_conflict"}}, nil
		}
	}
	return q.judge(), nil
}

// wantAgain fails unless r is the answer of before: byte for byte but for its ids, and for the name of a withdrawn document.
func (m *model) wantAgain(t *rapid.T, q modelRequest, before *modelAnswer, r reply) {
	first := anonymous(before.reply)
	if q.op == "submit" || q.op == "correct" {
		if u := m.known(dataOf(t, before.reply).text("upload_id")); u != nil && u.status == "WITHDRAWN" {
			first = strings.Replace(first, `"filename":"note.txt"`, `"filename":""`, 1)
		}
	}
	if again := anonymous(r); again != first || r.Header.Get("Idempotent-Replayed") != "true" || r.Header.Get("Location") != before.reply.Header.Get("Location") {
		t.Fatalf("%s %s\nrepeated is answered %s\nfirst it was %s", q.call.method, q.call.path, again, first)
	}
}

// signed is the request with its credential and key.
func (m *model) signed(t *rapid.T, q modelRequest) call {
	c := q.call
	c.key = q.key
	switch {
	case q.by == nil:
	case q.by.admin:
		c.bearer = adminToken
	case q.how == "bearer":
		c.bearer = q.by.token
	case q.how == "access token":
		c.bearer = m.accessToken(t, q.by)
	default:
		c.token = q.by.token
	}
	return c
}

// accessToken is one of by's, or its secret where the model knows that there is none to be had.
func (m *model) accessToken(t *rapid.T, by *modelCredential) string {
	if by.access == "" && by.active {
		form := "grant_type=client_credentials&client_id=" + by.id + "&client_secret=" + by.token
		r := m.ask(t, call{method: "POST", path: "/oauth/token", body: []byte(form), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
		var said struct {
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal(r.Raw, &said); err != nil || said.Token == "" {
			t.Fatalf("access token: %d %s", r.Status, r.Raw)
		}
		by.access = said.Token
	}
	if by.access == "" {
		return by.token
	}
	return by.access
}

func (m *model) ask(t *rapid.T, c call) reply {
	m.requests++
	r, err := m.s.try(c)
	if err != nil {
		t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	if r.Status >= 500 {
		t.Fatalf("%s %s: %d %s", c.method, c.path, r.Status, r.Raw)
	}
	return r
}

// decoded is the data of an answer.
type decoded map[string]any

func dataOf(t *rapid.T, r reply) (d decoded) {
	if err := json.Unmarshal(r.Data, &d); err != nil {
		t.Fatalf("data: %v: %s", err, r.Raw)
	}
	return d
}

func (d decoded) text(name string) string {
	s, _ := d[name].(string)
	return s
}

func (d decoded) number(name string) int64 {
	n, ok := d[name].(float64)
	if !ok {
		return -1
	}
	return int64(n)
}

// want fails unless the answer says every one of these.
func (d decoded) want(t *rapid.T, values map[string]any) {
	for name, value := range values {
		if fmt.Sprint(d[name]) != fmt.Sprint(value) {
			t.Fatalf("%s is %v, the model says %v: %v", name, d[name], value, d)
		}
	}
}

// What a step draws.

func (m *model) drawOrg(t *rapid.T) *modelOrg {
	return m.orgs[rapid.IntRange(0, len(m.orgs)-1).Draw(t, "organization")]
}

func (m *model) drawCredential(t *rapid.T) *modelCredential {
	return m.credentials[rapid.IntRange(0, len(m.credentials)-1).Draw(t, "credential")]
}

// drawUpload skips the step where there is none.
func (m *model) drawUpload(t *rapid.T) *modelUpload {
	all := m.uploads()
	if len(all) == 0 {
		t.Skip("no upload yet")
	}
	n := rapid.IntRange(0, len(all)-1).Draw(t, "upload")
	m.touched = all[n]
	return all[n]
}

// drawPath is the organization of a path about u: mostly its own.
func (m *model) drawPath(t *rapid.T, u *modelUpload) *modelOrg {
	if rapid.IntRange(0, 9).Draw(t, "path") == 9 {
		return m.orgs[1-slices.Index(m.orgs, u.org)]
	}
	return u.org
}

// drawBy is who asks: mostly one who may.
func (m *model) drawBy(t *rapid.T, org *modelOrg, role string) *modelCredential {
	switch n := rapid.IntRange(0, 19).Draw(t, "by"); {
	case n == 19:
		return nil
	case n == 18:
		return modelAdmin
	case n >= 15:
		return m.drawCredential(t)
	}
	for _, c := range m.credentials {
		if c.org == org && c.role == role && c.active {
			return c
		}
	}
	return m.credentials[0]
}

func drawHow(t *rapid.T) string {
	return rapid.SampledFrom([]string{"key", "key", "key", "bearer", "access token"}).Draw(t, "how")
}

// drawAdmin is who asks for what only the administrator may: mostly he.
func (m *model) drawAdmin(t *rapid.T) *modelCredential {
	switch n := rapid.IntRange(0, 9).Draw(t, "by"); n {
	case 9:
		return nil
	case 8:
		return m.drawCredential(t)
	}
	return modelAdmin
}

// drawKey is mostly a fresh one, otherwise one of a few, which may have been used.
func (m *model) drawKey(t *rapid.T) string {
	if n := rapid.IntRange(0, 7).Draw(t, "key"); n >= 6 {
		return fmt.Sprintf("%s-pooled-%d", m.name, n) // the administrator's keys are shared by all sequences
	}
	return m.freshKey()
}

func simply(status int) func() []modelOutcome {
	return func() []modelOutcome { return []modelOutcome{{status, ""}} }
}

func one(status int, code string) []modelOutcome { return []modelOutcome{{status, code}} }
