package httpapi

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
)

const completeJSON = `{"upload_id":"up_1","parts":[{"part_number":1,"size_bytes":64},{"part_number":2}],"client_file_sha256":"` +
	`bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}`

func TestPart(t *testing.T) {
	b := newBench(t)
	sum := sha256.Sum256([]byte("hello"))
	digest := "Content-Digest: sha-512=:AAAA:, sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	for _, path := range []string{partners + "/part?upload_id=up_1&part_number=4", oneUpload + "/parts/4", oneUpload + "/parts/4?part_number=4"} {
		data := b.call("PUT", path, strings.NewReader("hello"), asUp, key, asB, digest).succeeds(t, 200)
		want := map[string]any{"upload_id": "up_1", "part_number": 4.0, "sequence": 2.0, "status": "RECEIVING"}
		if !maps.Equal(data, want) {
			t.Errorf("%s: data %v", path, data)
		}
		p := b.got.(custody.IncomingPart)
		if p.OrgID != "org_1" || p.UploadID != "up_1" || p.Number != 4 || p.Length != 5 || p.DeclaredSHA256 != hex.EncodeToString(sum[:]) || string(b.part) != "hello" {
			t.Errorf("%s: the room got %+v, %q", path, p, b.part)
		}
		if b.key.Operation != custody.OpPutPart || b.key.RequestHash != "" {
			t.Errorf("idempotency %+v", b.key)
		}
	}
	b.call("PUT", oneUpload+"/parts/1", strings.NewReader(strings.Repeat("x", 2<<20)), asUp, key, asB).succeeds(t, 200)
	if len(b.part) != 2<<20 {
		t.Errorf("the room got %d bytes", len(b.part))
	}
}

func TestPartRefusals(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		path    string
		body    string
		headers []string
		status  int
		code    custody.Code
		paths   []string
	}{
		"media type":       {oneUpload + "/parts/1", "x", []string{asJ}, 415, custody.CodeMediaTypeUnsupported, nil},
		"no media type":    {oneUpload + "/parts/1", "x", nil, 415, custody.CodeMediaTypeUnsupported, nil},
		"encoded":          {oneUpload + "/parts/1", "x", []string{asB, "Content-Encoding: gzip"}, 415, custody.CodeMediaTypeUnsupported, nil},
		"chunked":          {oneUpload + "/parts/1", "x", []string{asB, chunked}, 411, custody.CodeLengthRequired, nil},
		"far too large":    {oneUpload + "/parts/1", strings.Repeat("x", 2<<20+1), []string{asB}, 413, custody.CodeBodyTooLarge, nil},
		"digest malformed": {oneUpload + "/parts/1", "x", []string{asB, "Content-Digest: sha-256=abc"}, 400, custody.CodeInvalidRequest, []string{"/header/Content-Digest"}},
		"digest too short": {oneUpload + "/parts/1", "x", []string{asB, "Content-Digest: sha-256=:YQ==:"}, 400, custody.CodeInvalidRequest, []string{"/header/Content-Digest"}},
		"digest capitals":  {oneUpload + "/parts/1", "x", []string{asB, "Content-Digest: SHA-256=:YQ==:"}, 400, custody.CodeInvalidRequest, []string{"/header/Content-Digest"}},
		"number zero":      {oneUpload + "/parts/0", "x", []string{asB}, 400, custody.CodeInvalidRequest, []string{"/path/part_number"}},
		"number text":      {oneUpload + "/parts/one", "x", []string{asB}, 400, custody.CodeInvalidRequest, []string{"/path/part_number"}},
		"number missing":   {partners + "/part?upload_id=up_1", "x", []string{asB}, 400, custody.CodeInvalidRequest, []string{"/query/part_number"}},
		"upload missing":   {partners + "/part?part_number=1", "x", []string{asB}, 400, custody.CodeInvalidRequest, []string{"/query/upload_id"}},
		"upload twice":     {partners + "/part?upload_id=a&upload_id=b&part_number=1", "x", []string{asB}, 400, custody.CodeInvalidRequest, []string{"/query"}},
		"two uploads":      {oneUpload + "/parts/1?upload_id=up_2", "x", []string{asB}, 409, custody.CodeUploadIdentityConflict, nil},
		"two numbers":      {oneUpload + "/parts/1?part_number=2", "x", []string{asB}, 409, custody.CodeUploadIdentityConflict, nil},
		"path not UTF-8":   {partners + "/up%ff/parts/1", "x", []string{asB}, 400, custody.CodeInvalidRequest, []string{"/path"}},
	} {
		t.Run(name, func(t *testing.T) {
			b.t, b.got = t, nil
			b.call("PUT", c.path, strings.NewReader(c.body), append(c.headers, asUp, key)...).wants(t, c.status, c.code, c.paths...)
			if b.got != nil {
				t.Error("it reached the room")
			}
		})
	}
}

func TestStalledPart(t *testing.T) {
	b := newBench(t, func(c *Config) { c.PartIdleTimeout = 100 * time.Millisecond })
	body, sender := io.Pipe()
	defer sender.Close()
	go sender.Write([]byte("he"))
	r := b.callLength("PUT", oneUpload+"/parts/1", body, 5, asUp, key, asB)
	r.wants(t, 408, custody.CodeRequestTimeout)
	if !r.Close {
		t.Error("the connection stays open")
	}
}

// A sender that is slow, but never still for the whole idle timeout, is served.
func TestSlowPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &rooms{}
		c := standing(t, b, Config{PartIdleTimeout: 2 * time.Second}, func(*http.Server) {})()
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() {
			_, err := io.WriteString(c, rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", "", 5))
			for range 5 {
				time.Sleep(500 * time.Millisecond) // the pace under test
				if err == nil {
					_, err = io.WriteString(c, "x")
				}
			}
		})
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close() != nil || res.StatusCode != 200 || string(b.part) != "xxxxx" {
			t.Errorf("answered %d, the room got %q", res.StatusCode, b.part)
		}
	})
}

func TestComplete(t *testing.T) {
	b := newBench(t)
	b.state.OrgID, b.accepted = "org 1/ü", true
	for _, path := range []string{partners + "/complete", oneUpload + "/complete"} {
		r := b.post(path, completeJSON, asUp)
		data := r.succeeds(t, 202)
		at := b.url + "/api/v1/organizations/org%201%2F%C3%BC/partner-uploads/up_1"
		if r.Header.Get("Location") != at || r.Header.Get("Retry-After") != "1" || r.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("headers %v", r.Header)
		}
		job, _ := data["job"].(map[string]any)
		polling, _ := job["polling"].(map[string]any)
		if got := slices.Sorted(maps.Keys(job)); !slices.Equal(got, []string{"job_id", "poll_after_seconds", "polling", "status_url"}) {
			t.Errorf("job has the fields %v", got)
		}
		if job["status_url"] != at || polling["url"] != at || polling["method"] != "GET" || len(polling["terminal_statuses"].([]any)) != 5 {
			t.Errorf("job %v", job)
		}
		if data["pipeline_id"] != "pl_1" || data["sequence"] != 3.0 || data["sha256"] != strings.Repeat("a", 64) {
			t.Errorf("data %v", data)
		}
		want := custody.Completion{OrgID: "org_1", UploadID: "up_1", ClientSHA256: strings.Repeat("b", 64), Parts: []custody.DeclaredPart{{Number: 1, SizeBytes: 64}, {Number: 2}}}
		if !reflect.DeepEqual(b.got, want) {
			t.Errorf("the room got %+v", b.got)
		}
	}

	b.replay = true
	if r := b.post(partners+"/complete", completeJSON, asUp); r.StatusCode != 202 || r.Header.Get("Location") == "" || r.Header.Get("Retry-After") != "1" || r.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a replayed 202 lacks its headers: %d %v", r.StatusCode, r.Header)
	}
	b.accepted, b.replay = false, false
	r := b.post(partners+"/complete", completeJSON, asUp)
	if data := r.succeeds(t, 200); data["job"] != nil || r.Header.Get("Location") != "" {
		t.Errorf("a 200 names a job: %v", data)
	}
	b.post(oneUpload+"/complete", strings.Replace(completeJSON, `"upload_id":"up_1",`, ``, 1), asUp).succeeds(t, 200)
}

func TestCompleteRefusals(t *testing.T) {
	b := newBench(t)
	edit := func(old, new string) string { return strings.Replace(completeJSON, old, new, 1) }
	const parts = `[{"part_number":1,"size_bytes":64},{"part_number":2}]`
	for name, c := range map[string]struct {
		body  string
		paths []string
	}{
		"no upload":     {edit(`"upload_id":"up_1",`, ``), []string{"/upload_id"}},
		"empty upload":  {edit(`up_1`, ``), []string{"/upload_id"}},
		"no parts":      {edit(parts, `[]`), []string{"/parts"}},
		"null parts":    {edit(parts, `null`), []string{"/parts"}},
		"null part":     {edit(`{"part_number":2}`, `null`), []string{"/parts/1"}},
		"no number":     {edit(`{"part_number":2}`, `{}`), []string{"/parts/1/part_number"}},
		"number zero":   {edit(`:2}`, `:0}`), []string{"/parts/1/part_number"}},
		"size zero":     {edit(`:64`, `:0`), []string{"/parts/0/size_bytes"}},
		"bad digest":    {edit(`:2}`, `:2,"sha256":"x"}`), []string{"/parts/1/sha256"}},
		"file digest":   {edit(`bbbb`, `BBBB`), []string{"/client_file_sha256"}},
		"extra":         {edit(`{`, `{"x":1,`), []string{""}},
		"extra in part": {edit(`:2}`, `:2,"x":1}`), []string{"/parts/1"}},
		"huge number":   {edit(`:2}`, `:1e30}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.post(partners+"/complete", c.body, asUp).wants(t, 400, custody.CodeInvalidRequest, c.paths...)
		})
	}
	b.t = t
	b.post(partners+"/up_2/complete", completeJSON, asUp).wants(t, 409, custody.CodeUploadIdentityConflict)
}

func TestIdempotencyKey(t *testing.T) {
	b := newBench(t)
	for name, headers := range map[string][]string{
		"missing":   nil,
		"short":     {"Idempotency-Key: 1234567"},
		"long":      {"Idempotency-Key: " + strings.Repeat("k", 129)},
		"space":     {"Idempotency-Key: 1234 5678"},
		"not ASCII": {"Idempotency-Key: 12345678é"},
		"two":       {"Idempotency-Key: 12345678", "Idempotency-Key: 12345678"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			for _, c := range []struct{ method, path, body, as, with string }{
				{"POST", partners + "/initiate", initiateJSON, asJ, asUp},
				{"PUT", oneUpload + "/parts/1", "x", asB, asUp},
				{"PUT", partners + "/part?upload_id=up_1&part_number=1", "x", asB, asUp},
				{"POST", partners + "/complete", completeJSON, asJ, asUp},
				{"POST", oneUpload + "/complete", completeJSON, asJ, asUp},
				{"POST", oneUpload + "/withdraw", `{}`, asJ, asUp},
				{"POST", "/admin/tenant-keys/issue", `{"org_id":"o","role":"ai_reader"}`, asJ, admin},
			} {
				r := b.call(c.method, c.path, strings.NewReader(c.body), append(headers, c.as, c.with)...)
				if name == "missing" && c.with == admin { // row 4.4 does not ask for a key; one that is sent is checked
					r.succeeds(t, 201)
					continue
				}
				r.wants(t, 400, custody.CodeIdempotencyKeyInvalid, keyPath)
			}
		})
	}
	b.t = t
	for _, fine := range []string{"12345678", strings.Repeat("~", 128)} {
		b.call("POST", partners+"/initiate", strings.NewReader(initiateJSON), asJ, asUp, "Idempotency-Key: "+fine).succeeds(t, 200)
	}
}

func TestReplayIsTheSameBytes(t *testing.T) {
	b := newBench(t)
	data := func() string {
		_, data, _ := strings.Cut(string(b.post(oneUpload+"/withdraw", `{}`, asUp).raw), `"data":`)
		return data
	}
	first := data()
	b.replay = true
	if again := data(); again != first || !strings.Contains(first, "wr_1") {
		t.Errorf("first %s\nthen %s", first, again)
	}
}
