package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// witness is the running service that rows are shown on, with two uploads of harbour's that went all the way.
type witness struct {
	*service
	p      partner // harbour's upload credential
	reader string  // its AI reader credential
	doc    document

	content                     []byte // of the partner upload, two parts
	initiated, completed, ready reply
	parts                       []reply
	partnerID                   string

	submitted, corrected reply // a text and its correction
	textID               string
}

// in is the same witness, failing another test.
func (w witness) in(t *testing.T) witness {
	w.service, w.p = w.service.in(t), w.p.in(t)
	return w
}

func summon(t *testing.T) witness {
	t.Helper()
	s := start(t, options{flags: append([]string{"--part-size-bytes", strconv.Itoa(partSize)}, hookFlags...), env: []string{"ACCESSION_RATE_LIMITS=off"}})
	w := witness{service: s, p: s.partner("harbour"), reader: s.issue("harbour", "ai_reader")}
	if err := json.Unmarshal(s.get("/api/v1/ai/openapi.json", "").Raw, &w.doc); err != nil {
		t.Fatal(err)
	}
	w.content = bytes.Repeat(note("contract-oak"), 60)[:partSize+1000]
	w.initiated = s.do(w.p.reserving(client.NewIdempotencyKey(), len(w.content))).want(t, 200, "")
	w.partnerID = w.initiated.field(t, "upload_id")
	pieces := cut(w.content, partSize)
	for i, piece := range pieces {
		w.parts = append(w.parts, w.p.part(w.partnerID, i+1, piece).want(t, 200, ""))
	}
	w.completed = w.p.complete(w.partnerID, pieces).want(t, 202, "")
	w.p.wantReady(w.partnerID)
	w.ready = s.get(w.p.path("/partner-uploads/"+w.partnerID), w.p.token).want(t, 200, "")
	w.submitted = s.do(w.p.submitting(client.NewIdempotencyKey(), text(string(note("contract-elm")), nil))).want(t, 201, "")
	w.textID = w.submitted.field(t, "upload_id")
	w.corrected = s.do(w.p.correcting(w.textID, client.NewIdempotencyKey(), text(string(note("contract-ash")), nil))).want(t, 201, "")
	return w
}

func (s *service) get(path, token string) reply {
	s.t.Helper()
	return s.do(call{method: "GET", path: path, token: token})
}

// post sends JSON without a credential.
func (s *service) post(path string, body any) reply {
	s.t.Helper()
	return s.do(call{method: "POST", path: path, json: body})
}

// issued is the answer to an issue by the administrator.
func (s *service) issued(body map[string]any) reply {
	s.t.Helper()
	return s.do(call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken, key: client.NewIdempotencyKey(), json: body})
}

// narrow is a credential of harbour with some scopes of its role.
func (s *service) narrow(role, scope string) string {
	s.t.Helper()
	return s.issued(map[string]any{"org_id": "harbour", "role": role, "scope": scope}).want(s.t, 201, "").field(s.t, "token")
}

// granting asks for an access token; pairs are names and values of the form.
func (s *service) granting(pairs ...string) reply {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return s.do(call{method: "POST", path: "/oauth/token", body: []byte(form.Encode()), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
}

// access exchanges a credential just issued for an access token.
func (s *service) access(issued reply, scope string) string {
	s.t.Helper()
	r := s.granting("grant_type", "client_credentials", "client_id", issued.field(s.t, "credential_id"), "client_secret", issued.field(s.t, "token"), "scope", scope).want(s.t, 200, "")
	return object(s.t, string(r.Raw))["access_token"].(string)
}

// absent as a value stands for leaving a field out.
type absent struct{}

// altered is body with one field changed.
func altered(body map[string]any, name string, value any) map[string]any {
	body = maps.Clone(body)
	body[name] = value
	if value == any(absent{}) {
		delete(body, name)
	}
	return body
}

// kind is what a field's value has to be.
type kind struct {
	name string
	fits func(any) bool
}

// shape is the fields of an object that have to be there.
type shape map[string]kind

func kindOf[T any](name string, fits func(T) bool) kind {
	return kind{name, func(v any) bool { typed, ok := v.(T); return ok && fits(typed) }}
}

func always[T any](T) bool { return true }

var (
	aString  = kindOf("a string that says something", func(s string) bool { return s != "" })
	aText    = kindOf("a string", always[string])
	aBoolean = kindOf("a boolean", always[bool])
	anObject = kindOf("an object", always[map[string]any])
	aList    = kindOf("a list", always[[]any])
	aDigest  = kindOf("64 lowercase hex digits", regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString)
	aTime    = kindOf("a date-time", func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil })
	anURI    = kindOf("an absolute URI", func(s string) bool { u, err := url.Parse(s); return err == nil && u.IsAbs() && u.Host != "" })
)

func atLeast(n float64) kind {
	return kindOf("an integer of at least "+strconv.Itoa(int(n)), func(v float64) bool { return v >= n && v == float64(int64(v)) })
}

// only is one value and no other.
func only(v any) kind {
	return kind{"nothing but the constant", func(got any) bool { return got == v }}
}

func stringsOnly(v map[string]any) bool {
	for _, s := range v {
		if text, ok := s.(string); !ok || text == "" {
			return false
		}
	}
	return len(v) > 0
}

// wantShape fails the test where a field is missing or of another kind.
func wantShape(t *testing.T, o map[string]any, want shape) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v, there := o[name]; !there || !want[name].fits(v) {
			t.Errorf("%s is %v, want %s", name, v, want[name].name)
		}
	}
	if t.Failed() {
		t.FailNow() // what follows relies on the form
	}
}

// wantOnly is wantShape, and no other field.
func wantOnly(t *testing.T, o map[string]any, want shape) {
	t.Helper()
	wantShape(t, o, want)
	if len(o) != len(want) {
		t.Errorf("fields %v, want %v", slices.Sorted(maps.Keys(o)), slices.Sorted(maps.Keys(want)))
	}
}

// data is the payload of an answer.
func (r reply) data(t *testing.T) map[string]any {
	t.Helper()
	return object(t, string(r.Data))
}

// wantWrong fails the test unless the answer is a 400 that names the field.
func (r reply) wantWrong(t *testing.T, code, path string) {
	t.Helper()
	r.want(t, 400, code)
	fields, _ := r.Details["fields"].([]any)
	for _, f := range fields {
		if at, _ := f.(map[string]any)["path"].(string); at == path || strings.HasPrefix(at, path+"/") {
			return
		}
	}
	t.Errorf("details.fields do not name %s: %s", path, r.Raw)
}

// document is the published contract.
type document map[string]any

// at walks to a place in the document, through references.
func (d document) at(t *testing.T, steps ...string) map[string]any {
	t.Helper()
	return d.from(t, d, steps...)
}

func (d document) from(t *testing.T, place map[string]any, steps ...string) map[string]any {
	t.Helper()
	for _, step := range steps {
		next, ok := place[step].(map[string]any)
		if !ok {
			t.Fatalf("the document has nothing at %q of %q", step, steps)
		}
		if ref, ok := next["$ref"].(string); ok {
			next = d.at(t, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		place = next
	}
	return place
}

// takes is the schema of an operation's JSON body.
func (d document) takes(t *testing.T, method, path string) map[string]any {
	t.Helper()
	return d.at(t, "paths", path, method, "requestBody", "content", "application/json", "schema")
}

// gives is the schema of an answer's data.
func (d document) gives(t *testing.T, method, path, status string) map[string]any {
	t.Helper()
	return d.at(t, "paths", path, method, "responses", status, "content", "application/json", "schema", "properties", "data")
}

// wantProperty fails the test unless schema has the property, required or not, of that type, and returns it.
func (d document) wantProperty(t *testing.T, schema map[string]any, name string, required bool, typ string) map[string]any {
	t.Helper()
	p := d.from(t, schema, "properties", name)
	list, _ := schema["required"].([]any)
	if p["type"] != typ || slices.Contains(list, any(name)) != required {
		t.Errorf("the document says of %s: %v, required %v", name, p, list)
	}
	return p
}
