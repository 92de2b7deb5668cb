package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// call is one raw request: the tests of the contract speak HTTP themselves, so that they would see what the client hides.
type call struct {
	method, path string
	token        string // x-api-key
	bearer       string
	key          string // Idempotency-Key
	header       map[string]string
	json         any
	body         []byte // application/octet-stream
}

// reply is its answer, decoded as far as the envelope and the error object go.
type reply struct {
	Status    int
	Header    http.Header
	Raw       []byte
	RequestID string          `json:"request_id"`
	TraceID   string          `json:"trace_id"`
	Data      json.RawMessage `json:"data"`
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Details   map[string]any  `json:"details"`
}

func (s *service) do(c call) reply {
	s.t.Helper()
	r, err := s.try(c)
	if err != nil {
		s.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return r
}

func (s *service) try(c call) (reply, error) {
	var body io.Reader
	contentType := ""
	switch {
	case c.json != nil:
		b, err := json.Marshal(c.json)
		if err != nil {
			return reply{}, err
		}
		body, contentType = bytes.NewReader(b), "application/json"
	case c.body != nil:
		body, contentType = bytes.NewReader(c.body), "application/octet-stream"
	}
	req, err := http.NewRequest(c.method, s.url+c.path, body)
	if err != nil {
		return reply{}, err
	}
	set := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	set("Content-Type", contentType)
	set("X-Api-Key", c.token)
	set("Idempotency-Key", c.key)
	if c.bearer != "" {
		set("Authorization", "Bearer "+c.bearer)
	}
	for name, value := range c.header {
		set(name, value)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	r := reply{Status: resp.StatusCode, Header: resp.Header}
	if r.Raw, err = io.ReadAll(resp.Body); err != nil {
		return r, err
	}
	fmt.Fprintf(s.said, "%v\n%s\n", r.Header, r.Raw)
	if len(r.Raw) > 0 && !strings.HasPrefix(r.Header.Get("Content-Type"), "text/") {
		err = json.Unmarshal(r.Raw, &r)
	}
	return r, err
}

// want fails the test unless the answer has this status and, for errors, this code.
func (r reply) want(t testing.TB, status int, code string) reply {
	t.Helper()
	if r.Status != status || r.Code != code {
		t.Fatalf("got %d %q, want %d %q: %s", r.Status, r.Code, status, code, r.Raw)
	}
	return r
}

// field reads one top-level field of data as text.
func (r reply) field(t testing.TB, name string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(r.Data, &fields); err != nil {
		t.Fatalf("data: %v: %s", err, r.Raw)
	}
	switch v := fields[name].(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// issue makes a credential and returns its token.
func (s *service) issue(org, role string) string {
	s.t.Helper()
	r := s.do(call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken, key: client.NewIdempotencyKey(),
		json: map[string]any{"org_id": org, "role": role}}).want(s.t, 201, "")
	return r.field(s.t, "token")
}

func consent() map[string]any {
	return map[string]any{
		"accepted": true, "beta_agreement_version": "beta-1", "ai_readable_use_consent_version": "consent-1",
		"text_hash_sha256": hexSum([]byte("agreement")), "consenting_user_id": "user-7",
		"consenting_user_email": "consenting.person@example.com", "accepted_at": "2026-11-01T10:00:00Z",
	}
}

// partner is an organization's uploader on the wire.
type partner struct {
	*service
	org, token string
}

func (s *service) partner(org string) partner {
	s.t.Helper()
	return partner{s, org, s.issue(org, "solution_company_upload")}
}

func (p partner) path(rest string) string { return "/api/v1/organizations/" + p.org + rest }

func (p partner) initiate(filename, contentType string, size int) string {
	p.t.Helper()
	r := p.do(call{method: "POST", path: p.path("/partner-uploads/initiate"), token: p.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"filename": filename, "content_type": contentType, "size_bytes": size, "consent": consent()}}).want(p.t, 200, "")
	return r.field(p.t, "upload_id")
}

func (p partner) part(uploadID string, number int, body []byte) reply {
	p.t.Helper()
	return p.do(call{method: "PUT", path: p.path("/partner-uploads/" + uploadID + "/parts/" + strconv.Itoa(number)), token: p.token,
		key: client.NewIdempotencyKey(), body: body})
}

func (p partner) complete(uploadID string, parts [][]byte) reply {
	p.t.Helper()
	whole := sha256.New()
	var ledger []map[string]any
	for i, part := range parts {
		whole.Write(part)
		ledger = append(ledger, map[string]any{"part_number": i + 1, "sha256": hexSum(part), "size_bytes": len(part)})
	}
	return p.do(call{method: "POST", path: p.path("/partner-uploads/complete"), token: p.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"upload_id": uploadID, "parts": ledger, "client_file_sha256": hex.EncodeToString(whole.Sum(nil))}})
}

// send takes a small document through initiate, its one part and complete.
func (p partner) send(filename, contentType string, content []byte) string {
	p.t.Helper()
	id := p.initiate(filename, contentType, len(content))
	p.part(id, 1, content).want(p.t, 200, "")
	p.complete(id, [][]byte{content}).want(p.t, 202, "")
	return id
}

// status is what the tests read of an upload's status.
type status struct {
	UploadID       string `json:"upload_id"`
	Status         string `json:"status"`
	Sequence       int64  `json:"sequence"`
	ReceivedBytes  int64  `json:"received_bytes"`
	NextPartNumber int    `json:"next_part_number"`
	Gates          []struct {
		Name   string         `json:"name"`
		State  string         `json:"state"`
		Detail map[string]any `json:"detail"`
	} `json:"gates"`
	Failure *struct {
		Gate, Code, Message string
	} `json:"failure"`
	ExpiresAt     time.Time               `json:"expires_at"`
	CreatedAt     time.Time               `json:"created_at"`
	RetainedUntil time.Time               `json:"retained_until"`
	Withdrawal    *client.WithdrawalState `json:"withdrawal"`
}

func (p partner) status(uploadID string) status {
	p.t.Helper()
	return decode[status](p.t, p.do(call{method: "GET", path: p.path("/partner-uploads/" + uploadID), token: p.token}).want(p.t, 200, ""))
}

func decode[T any](t testing.TB, r reply) (v T) {
	t.Helper()
	if err := json.Unmarshal(r.Data, &v); err != nil {
		t.Fatalf("data: %v: %s", err, r.Raw)
	}
	return v
}

// follow waits for a terminal status, by long polls.
func (p partner) follow(uploadID string) status {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a gate may have a minute, and a busy machine many uploads
	defer cancel()
	etag := ""
	for ctx.Err() == nil {
		r := p.do(call{method: "GET", path: p.path("/partner-uploads/" + uploadID), token: p.token,
			header: map[string]string{"Prefer": "wait=10", "If-None-Match": etag}})
		if r.Status == http.StatusNotModified {
			continue
		}
		st := decode[status](p.t, r.want(p.t, 200, ""))
		switch st.Status {
		case "READY", "REJECTED", "FAILED", "EXPIRED", "WITHDRAWN":
			return st
		}
		etag = r.Header.Get("ETag")
	}
	p.t.Fatalf("upload %s reached no terminal status: %+v", uploadID, p.status(uploadID))
	return status{}
}

func (p partner) withdraw(uploadID string) reply {
	p.t.Helper()
	return p.do(call{method: "POST", path: p.path("/partner-uploads/" + uploadID + "/withdraw"), token: p.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"reason": "e2e"}})
}

func (s *service) context(org, token, uploadID string) reply {
	s.t.Helper()
	return s.do(call{method: "GET", path: "/api/v1/organizations/" + org + "/ai-context/" + uploadID, token: token})
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
