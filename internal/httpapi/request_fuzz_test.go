package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

// fuzzDoor is a door over rooms, without a listener: what reads requests from the wire has a target of its own.
type fuzzDoor struct {
	http.Handler
	*rooms
	operations []fuzzOperation
}

// fuzzOperation is one operation of the published document.
type fuzzOperation struct {
	id, method, path string
	request          []byte          // its example; nil where it has no body
	answers          map[string]bool // the statuses that the document lists
}

func newFuzzDoor(f *testing.F) *fuzzDoor {
	f.Helper()
	d := &fuzzDoor{rooms: &rooms{}}
	d.state = custody.UploadState{Upload: custody.Upload{ID: "up_1", OrgID: "org_1", PipelineID: "pl_1", Status: custody.StatusReceiving, Sequence: 3, NextPart: 2, CreatedAt: noonish, UpdatedAt: noonish}}
	d.awaited = func(context.Context) (custody.UploadState, error) { return d.state, nil }
	handler, err := New(Config{BaseURL: "https://custody.example", MaxPartBytes: 1 << 20, Log: slog.New(slog.DiscardHandler), Sandbox: newSandbox(f, nil), MCP: &messages{}, Webhooks: d, Agreement: &Agreement{Text: "x"}},
		d, d, d, desk{d.rooms}, d, d, d, Check{Name: "database", Readiness: d})
	if err != nil {
		f.Fatal(err)
	}
	d.Handler = handler
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string                     `json:"operationId"`
			Responses   map[string]json.RawMessage `json:"responses"`
			RequestBody json.RawMessage            `json:"requestBody"`
		} `json:"paths"`
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/ai/openapi.json", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		f.Fatal(err)
	}
	examples := examples()
	for path, item := range doc.Paths {
		for method, op := range item {
			o := fuzzOperation{id: op.OperationID, method: strings.ToUpper(method), path: path, answers: map[string]bool{}}
			for status := range op.Responses {
				o.answers[status] = true
			}
			for name, value := range map[string]string{"org_id": "org_1", "upload_id": "up_1", "part_number": "1", "request_id": "req_1"} {
				o.path = strings.ReplaceAll(o.path, "{"+name+"}", value)
			}
			o.path = regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(o.path, "id_12345")
			if op.RequestBody != nil {
				o.request, _ = json.Marshal(examples[op.OperationID].Request)
			}
			d.operations = append(d.operations, o)
		}
	}
	slices.SortFunc(d.operations, func(a, b fuzzOperation) int { return strings.Compare(a.id, b.id) })
	return d
}

// desk is an office that issues credentials and knows none: what else reaches it is noted, and not found.
type desk struct{ *rooms }

func (d desk) unknown(op any, key custody.Idempotency) error {
	d.got, d.key = op, key
	return custody.Errorf(custody.CodeCredentialNotFound, "there is no such thing")
}

func (d desk) AuthenticateClient(context.Context, string, string) (custody.Credential, error) {
	return custody.Credential{}, badClient()
}

func (d desk) GrantToken(context.Context, custody.Credential, tenant.TokenRequest) (tenant.AccessToken, error) {
	return tenant.AccessToken{}, badClient()
}

func (d desk) RevokeToken(context.Context, custody.Caller, string) error { return nil }

func (d desk) Introspect(context.Context, custody.Credential, string) (tenant.Introspection, error) {
	return tenant.Introspection{}, nil
}

func (d desk) KeySet(context.Context) (json.RawMessage, error) {
	return json.RawMessage(`{"keys":[]}`), nil
}

func (d desk) Credentials(context.Context, custody.Caller, custody.CredentialQuery) ([]custody.Credential, string, error) {
	return nil, "", nil
}

func (d desk) RevokeCredential(_ context.Context, _ custody.Caller, id string, key custody.Idempotency) (custody.Answer, error) {
	return custody.Answer{}, d.unknown(id, key)
}

func (d desk) RotateCredential(_ context.Context, _ custody.Caller, q custody.CredentialRotation, key custody.Idempotency) (custody.Answer, string, error) {
	return custody.Answer{}, "", d.unknown(q, key)
}

func (d desk) SigningKeys(context.Context, custody.Caller) ([]custody.KeyState, error) {
	return nil, nil
}

func (d desk) RotateSigningKey(_ context.Context, _ custody.Caller, purpose string, key custody.Idempotency) (custody.Answer, error) {
	return custody.Answer{}, d.unknown(purpose, key)
}

func (d desk) RotateKeys(_ context.Context, _ custody.Caller, key custody.Idempotency) (custody.Answer, error) {
	return custody.Answer{}, d.unknown(nil, key)
}

func (d desk) RetireSigningKey(_ context.Context, _ custody.Caller, id string, force bool, key custody.Idempotency) (custody.Answer, error) {
	return custody.Answer{}, d.unknown([]any{id, force}, key)
}

func (d desk) SignIn(context.Context, string, string) (string, custody.Session, error) {
	return "", custody.Session{}, notSignedIn()
}

func (d desk) Session(context.Context, string) (custody.Session, error) {
	return custody.Session{}, notSignedIn()
}

func (d desk) Seated(context.Context, string, custody.Role) (custody.Caller, error) {
	return custody.Caller{}, notSignedIn()
}

func (d desk) SignOut(context.Context, string) error { return nil }

var noonish = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// patient is a recorder that takes deadlines, as a connection does.
type patient struct{ *httptest.ResponseRecorder }

func (patient) SetReadDeadline(time.Time) error { return nil }

// ask has the door answer, and refuses what no answer may be: an error of the service, a header that breaks out of its line, a body
// that is not of its type.
func (d *fuzzDoor) ask(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	d.caller, d.got, d.key = custody.Caller{}, nil, custody.Idempotency{}
	r.RemoteAddr = "192.0.2.1:4711"
	w := httptest.NewRecorder()
	d.ServeHTTP(patient{w}, r)
	if w.Code >= 500 {
		t.Fatalf("%s %q answered %d: %s", r.Method, r.URL, w.Code, w.Body)
	}
	if id := w.Header().Get("X-Request-Id"); !regexp.MustCompile(`^req_[0-9a-z]{26}$`).MatchString(id) || strings.Contains(r.Header.Get("X-Request-Id"), id) {
		t.Errorf("X-Request-Id %q", id)
	}
	if sentTrace(w.Header().Values("Traceparent")) == "" {
		t.Errorf("traceparent %q", w.Header().Values("Traceparent"))
	}
	for name, values := range w.Header() {
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				t.Errorf("header %q: %q", name, v)
			}
		}
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
		t.Errorf("%q is no JSON", w.Body)
	}
	if d.key.Operation != "" && !regexp.MustCompile(`^([!-~]{8,128})?$`).MatchString(d.key.Key) {
		t.Errorf("a room was reached with the key %q", d.key.Key)
	}
	return w
}

// Requests of whatever bytes end in an answer of the contract: never an error of the service, nothing that breaks out of a header,
// and no room is reached by who did not send a credential.
func FuzzRequest(f *testing.F) {
	d := newFuzzDoor(f)
	const tail = "\r\nHost: custody.example\r\nIdempotency-Key: key-12345\r\n"
	for _, o := range d.operations {
		for _, as := range []string{asUp, asAI, admin} {
			kind := "Content-Type: application/json\r\n"
			if o.request == nil {
				kind = ""
			}
			f.Add([]byte(fmt.Sprintf("%s %s HTTP/1.1%s%s\r\n%sContent-Length: %d\r\n\r\n%s", o.method, o.path, tail, as, kind, len(o.request), o.request)))
		}
	}
	for _, r := range []string{
		"GET " + oneUpload + "?include_gates=false HTTP/1.1" + tail + asUp + "\r\nPrefer: respond-async, wait=99999999999999999999\r\nIf-None-Match: W/\"3.2.x\", *\r\n\r\n",
		"GET " + oneUpload + " HTTP/1.1" + tail + asUp + "\r\nPrefer: wait=5\r\nTraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nX-Request-Id: mine\r\n\r\n",
		"PUT " + partners + "/parts?upload_id=up_1&part_number=1 HTTP/1.1" + tail + asUp + "\r\nContent-Type: application/octet-stream\r\nContent-Length: 4\r\nContent-Digest: sha-256=:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=:\r\n\r\ntest",
		"POST " + partners + "/parts HTTP/1.1" + tail + asUp + "\r\nTransfer-Encoding: chunked\r\nContent-Type: application/octet-stream\r\n\r\n4\r\ntest\r\n0\r\n\r\n",
		"GET /portal/session HTTP/1.1\r\nHost: custody.example\r\nCookie: __Host-accession_session=" + strings.Repeat("a", cookieLength) + "; x=y\r\nX-Accession-Seat: ai_reader\r\nOrigin: https://custody.example\r\n\r\n",
		"GET " + oneUpload + " HTTP/1.1\r\nHost: custody.example\r\nCookie: __Host-accession_session=" + strings.Repeat("a", cookieLength) + "\r\nX-Accession-Seat: admin\r\nSec-Fetch-Site: same-origin\r\n\r\n",
		"POST /oauth/token HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YTpi\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 67\r\n\r\ngrant_type=client_credentials&resource=a&resource=b&scope=ai_context",
		"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\r\nContent-Length: 29\r\n\r\nclient_id=%ff&client_secret=%",
		"GET /admin/audit?cursor=MTcgYQ&since=2026-11-20T09:30:00Z HTTP/1.1" + tail + admin + "\r\n\r\n",
		"GET " + base + "/partner-uploads/up_1%2f..%2fup_2?x=1&x=2;y HTTP/1.1" + tail + asUp + "\r\n\r\n", "GET //a HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "BREW /x HTTP/1.0\r\n\r\n",
		"GET " + oneUpload + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acc_uploader\r\nX-Api-Key: acc_uploader\r\nExpect: 100-continue\r\n\r\n",
		"POST /mcp HTTP/1.1" + tail + asAI + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
	} {
		f.Add([]byte(r))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || !httpguts.ValidHostHeader(r.Host) || len(raw) > 64<<10 {
			return
		}
		for name, values := range r.Header {
			for _, v := range values {
				if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
					return // net/http's server refuses it
				}
			}
		}
		presented := r.Header.Values("Authorization")
		presented = append(presented, r.Header.Values("X-Api-Key")...)
		d.ask(t, r)
		if d.key.Operation != "" && d.key.CredentialID != "" && !slices.ContainsFunc(presented, func(p string) bool {
			return strings.Contains(p, uploaderToken) || strings.Contains(p, readerToken) || strings.Contains(p, adminToken)
		}) {
			t.Errorf("%q reached %s as %+v", raw, d.key.Operation, d.caller)
		}
	})
}

// A body is refused with what is wrong with it, in none of its own words; or it is taken, and says the same however its JSON is
// spelled: two spellings cannot be one request for the idempotency and two for the room.
func FuzzBody(f *testing.F) {
	d := newFuzzDoor(f)
	var bodies []fuzzOperation
	for _, o := range d.operations {
		if o.request != nil {
			bodies = append(bodies, o)
		}
	}
	const word = "zqzqzq"
	for i, o := range bodies {
		request := string(o.request)
		f.Add(uint8(i), request)
		f.Add(uint8(i), strings.Replace(request, "{", `{"`+word+`":1,"a.`+word+`":{"b":[]},`, 1))
		f.Add(uint8(i), strings.Replace(request, `":"`, `":"`+word+`\u0000\ud800`, 1))
		f.Add(uint8(i), strings.Replace(request, `":`, `":[null],"x":`, 1))
		f.Add(uint8(i), request+" {}")
		f.Add(uint8(i), strings.ToUpper(request))
	}
	f.Add(uint8(0), "[]")
	f.Add(uint8(0), `{"org_id":"a","org_id":"b"}`)
	f.Add(uint8(0), "\xef\xbb\xbf{}")
	f.Add(uint8(0), "1e999999999")
	f.Add(uint8(0), strings.Repeat("[", 20000))
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		o := bodies[int(which)%len(bodies)]
		as := asUp
		switch {
		case strings.HasPrefix(o.path, "/admin"), strings.Contains(o.path, "review"), strings.Contains(o.path, "retention"), strings.Contains(o.path, "webhook"):
			as = admin
		}
		send := func(body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(o.method, o.path, strings.NewReader(body))
			for _, h := range []string{asJ, key, as} {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			return d.ask(t, r)
		}
		w := send(body)
		if !o.answers[fmt.Sprint(w.Code)] && w.Code != http.StatusNotFound {
			t.Errorf("%s answered %d, which the document does not know: %s", o.id, w.Code, w.Body)
		}
		if d.key.Operation == "" {
			if said := w.Body.String(); w.Code >= 400 && strings.Contains(said, word) {
				t.Errorf("%s repeats what was sent: %s", o.id, said)
			}
			return
		}
		first, got := d.key.RequestHash, d.got
		var value any
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil && err != io.EOF {
			t.Fatalf("%s takes %q, which is no JSON: %v", o.id, body, err)
		} else if err == io.EOF {
			return // a body that may be left out
		}
		again, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if w := send(string(again)); d.key.RequestHash != first || !reflect.DeepEqual(d.got, got) {
			t.Errorf("%s takes %q, but not alike as %q: %d %s", o.id, body, again, w.Code, w.Body)
		}
	})
}
