package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

const partSize = 4096 // of the services that take documents in several parts

func smallParts() options { return options{flags: []string{"--part-size-bytes", fmt.Sprint(partSize)}} }

// form is one of the two path forms of an operation.
type form string

const (
	byQuery form = "identifiers in query or body"
	byPath  form = "identifiers in the path"
)

// put is the request for one part.
func (p partner) put(f form, uploadID string, number any, key string, body []byte) call {
	path := fmt.Sprintf("/partner-uploads/part?upload_id=%s&part_number=%v", uploadID, number)
	if f == byPath {
		path = fmt.Sprintf("/partner-uploads/%s/parts/%v", uploadID, number)
	}
	return call{method: "PUT", path: p.path(path), token: p.token, key: key, body: body}
}

// closing is the request that completes an upload.
func (p partner) closing(f form, uploadID, key string, parts [][]byte) call {
	var ledger []map[string]any
	for i, part := range parts {
		ledger = append(ledger, map[string]any{"part_number": i + 1, "sha256": hexSum(part), "size_bytes": len(part)})
	}
	body := map[string]any{"upload_id": uploadID, "parts": ledger, "client_file_sha256": hexSum(whole(parts))}
	path := "/partner-uploads/complete"
	if f == byPath {
		path = "/partner-uploads/" + uploadID + "/complete"
		delete(body, "upload_id")
	}
	return call{method: "POST", path: p.path(path), token: p.token, key: key, json: body}
}

// sameBut fails the test unless both answers are the same, byte for byte, but for their request_id and trace_id.
func sameBut(t testing.TB, first, second reply) {
	t.Helper()
	if first.Status != second.Status || anonymous(first) != anonymous(second) {
		t.Errorf("answers differ:\n%d %s\n%d %s", first.Status, first.Raw, second.Status, second.Raw)
	}
	for _, name := range []string{"Location", "Retry-After", "Content-Type", "Content-Length", "Www-Authenticate", "Allow"} {
		if first.Header.Get(name) != second.Header.Get(name) {
			t.Errorf("%s differs: %q and %q", name, first.Header.Get(name), second.Header.Get(name))
		}
	}
}

func anonymous(r reply) string {
	return strings.NewReplacer(r.RequestID, "REQUEST", r.TraceID, "TRACE").Replace(string(r.Raw))
}

// wantReplay fails the test unless second is the first answer again.
func wantReplay(t testing.TB, first, second reply) {
	t.Helper()
	sameBut(t, first, second)
	if first.Header.Get("Idempotent-Replayed") != "" || second.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("Idempotent-Replayed: first %q, then %q", first.Header.Get("Idempotent-Replayed"), second.Header.Get("Idempotent-Replayed"))
	}
	if first.RequestID == second.RequestID {
		t.Error("both answers carry one request_id")
	}
}

func TestBothPathFormsAreOneOperation(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	for _, order := range [][2]form{{byQuery, byPath}, {byPath, byQuery}} {
		content := bytes.Repeat(note("two-doors"), 70)
		parts := cut(content, partSize)
		id := p.initiate("note.txt", "text/plain", len(content))
		for i, part := range parts {
			key := client.NewIdempotencyKey()
			first := s.do(p.put(order[0], id, i+1, key, part)).want(t, 200, "")
			wantReplay(t, first, s.do(p.put(order[1], id, i+1, key, part)))
		}
		key := client.NewIdempotencyKey()
		first := s.do(p.closing(order[0], id, key, parts)).want(t, 202, "")
		wantReplay(t, first, s.do(p.closing(order[1], id, key, parts)))
		p.wantReady(id)
		wantReplay(t, first, s.do(p.closing(order[1], id, key, parts))) // also once the job is done
	}
}

func TestRequestsThatNameTwoUploadsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	one, two := p.initiate("a.txt", "text/plain", 10), p.initiate("b.txt", "text/plain", 10)
	body := []byte("0123456789")
	for _, query := range []string{"?upload_id=" + two, "?part_number=2", "?upload_id=" + two + "&part_number=1"} {
		c := p.put(byPath, one, 1, client.NewIdempotencyKey(), body)
		c.path += query
		s.do(c).want(t, 409, "upload_identity_conflict")
	}
	c := p.put(byPath, one, 1, client.NewIdempotencyKey(), body)
	c.path += "?upload_id=" + one + "&part_number=1"
	s.do(c).want(t, 200, "")
	closing := p.closing(byQuery, two, client.NewIdempotencyKey(), [][]byte{body})
	closing.path = p.path("/partner-uploads/" + one + "/complete")
	s.do(closing).want(t, 409, "upload_identity_conflict")
	if st := p.status(one); st.Status != "RECEIVING" {
		t.Errorf("status %s", st.Status)
	}
	if st := p.status(two); st.Status != "INITIATED" {
		t.Errorf("status %s", st.Status)
	}
}

// rawPart sends the head of a part's request and as much of its body as given, and returns the open connection.
func (p partner) rawPart(uploadID string, number int, key string, length int, sent []byte) net.Conn {
	p.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: service\r\nX-Api-Key: %s\r\nIdempotency-Key: %s\r\n"+
		"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s",
		p.path(fmt.Sprintf("/partner-uploads/%s/parts/%d", uploadID, number)), p.token, key, length, sent)
	if err != nil {
		p.t.Fatal(err)
	}
	return conn
}

// awaitLog returns once the service has logged text.
func (s *service) awaitLog(text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if !s.log.await(ctx, s.done, text) {
		s.t.Fatalf("the log never said %s", text)
	}
}

func TestUploadResumesAtTheNextPartAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	parts := cut(bytes.Repeat(note("broken-mast"), 100), partSize)
	id := p.initiate("note.txt", "text/plain", len(whole(parts)))
	p.part(id, 1, parts[0]).want(t, 200, "")
	held := len(s.objects())

	key := client.NewIdempotencyKey()
	conn := p.rawPart(id, 2, key, len(parts[1]), parts[1][:partSize/2])
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(`"code":"part_length_invalid"`)
	st := p.status(id)
	if st.NextPartNumber != 2 || st.ReceivedBytes != partSize || st.Status != "RECEIVING" {
		t.Fatalf("half a part counts: %+v", st)
	}
	if now := len(s.objects()); now != held {
		t.Errorf("half a part stays in storage: %d objects, had %d", now, held)
	}
	for n := st.NextPartNumber; n <= len(parts); n++ {
		s.do(p.put(byPath, id, n, key, parts[n-1])).want(t, 200, "") // the broken request did not burn its key
		key = client.NewIdempotencyKey()
	}
	p.complete(id, parts).want(t, 202, "")
	p.wantReady(id)
}

func TestPartsAreAcceptedOnceInOrderAndWhole(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	parts := cut(noise(2*partSize+100, 7), partSize)
	id := p.initiate("a.bin", "application/octet-stream", 2*partSize+100)
	put := func(number any, body []byte) reply {
		t.Helper()
		return s.do(p.put(byQuery, id, number, client.NewIdempotencyKey(), body))
	}
	detail := func(r reply, name string, want float64) {
		t.Helper()
		if r.Details[name] != want {
			t.Errorf("details.%s is %v, want %v: %s", name, r.Details[name], want, r.Raw)
		}
	}
	detail(put(2, parts[1]).want(t, 409, "part_out_of_order"), "next_part_number", 1)
	detail(put(1, parts[0][:100]).want(t, 400, "part_length_invalid"), "expected_bytes", partSize)
	detail(put(1, append(parts[0:1:1][0][:partSize:partSize], 'x')).want(t, 400, "part_length_invalid"), "expected_bytes", partSize)
	put(0, parts[0]).want(t, 400, "invalid_request")
	put("one", parts[0]).want(t, 400, "invalid_request")
	put(1, noise(2*partSize+1, 1)).want(t, 413, "body_too_large")

	first := put(1, parts[0]).want(t, 200, "")
	again := put(1, parts[0]).want(t, 200, "") // another key: the same part again
	if again.Header.Get("Idempotent-Replayed") != "" || string(first.Data) != string(again.Data) {
		t.Errorf("the same bytes again: %s, first %s", again.Raw, first.Raw)
	}
	detail(put(1, noise(partSize, 8)).want(t, 409, "part_conflict"), "next_part_number", 2)
	put(1, parts[0][:50]).want(t, 409, "part_conflict")
	detail(put(3, parts[2]).want(t, 409, "part_out_of_order"), "next_part_number", 2)
	put(2, parts[1]).want(t, 200, "")
	detail(put(3, parts[1]).want(t, 400, "part_length_invalid"), "expected_bytes", 100)
	put(3, parts[2]).want(t, 200, "")
	put(4, parts[2]).want(t, 409, "part_out_of_order")
	if st := p.status(id); st.ReceivedBytes != 2*partSize+100 || st.NextPartNumber != 4 {
		t.Errorf("status: %+v", st)
	}
	p.complete(id, parts).want(t, 202, "")
	put(4, parts[2]).want(t, 409, "upload_not_receiving")
	put(1, noise(partSize, 9)).want(t, 409, "part_conflict")
	put(1, parts[0]).want(t, 200, "")
}

func TestFormOfAPartRequest(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	body := []byte("the whole of a small document, in one part")
	digest := func(b []byte) string {
		sum := sha256.Sum256(b)
		return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	}
	for _, c := range []struct {
		name   string
		header map[string]string
		key    string
		status int
		code   string
	}{
		{"right digest", map[string]string{"Content-Digest": digest(body)}, "key-right", 200, ""},
		{"right digest among others", map[string]string{"Content-Digest": "md5=:AAAA:, " + digest(body)}, "key-among", 200, ""},
		{"wrong digest", map[string]string{"Content-Digest": digest([]byte("another"))}, "key-wrong", 400, "content_digest_mismatch"},
		{"malformed digest", map[string]string{"Content-Digest": "sha-256=abc"}, "key-malformed", 400, "invalid_request"},
		{"JSON", map[string]string{"Content-Type": "application/json"}, "key-json", 415, "media_type_unsupported"},
		{"no media type", map[string]string{"Content-Type": " "}, "key-none", 415, "media_type_unsupported"},
		{"compressed", map[string]string{"Content-Encoding": "gzip"}, "key-gzip", 415, "media_type_unsupported"},
		{"no key", nil, "", 400, "idempotency_key_invalid"},
		{"short key", nil, "1234567", 400, "idempotency_key_invalid"},
		{"long key", nil, strings.Repeat("k", 129), 400, "idempotency_key_invalid"},
		{"key with a space", nil, "with a space", 400, "idempotency_key_invalid"},
		{"longest key", nil, strings.Repeat("k", 128), 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := p.in(t), s.in(t)
			id := p.initiate("note.txt", "text/plain", len(body))
			request := p.put(byPath, id, 1, c.key, body)
			request.header = c.header
			s.do(request).want(t, c.status, c.code)
			want := 1
			if c.status == 200 {
				want = 2
			}
			if st := p.status(id); st.NextPartNumber != want {
				t.Errorf("next part %d, want %d", st.NextPartNumber, want)
			}
		})
	}
	t.Run("no length", func(t *testing.T) {
		p := p.in(t)
		id := p.initiate("note.txt", "text/plain", len(body))
		answer := p.raw(fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: service\r\nX-Api-Key: %s\r\nIdempotency-Key: key-chunked\r\nConnection: close\r\n"+
			"Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", p.path("/partner-uploads/"+id+"/parts/1"), p.token))
		if !strings.HasPrefix(answer, "HTTP/1.1 411 ") || !strings.Contains(answer, `"code":"length_required"`) {
			t.Errorf("chunked part: %s", answer)
		}
	})
}

// raw sends bytes on a connection of their own and returns what comes back until the service closes it.
func (s *service) raw(request string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		s.t.Fatal(err)
	}
	return readAll(s.t, conn)
}

func readAll(t testing.TB, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	return answer.String()
}

// readResponse reads one answer from a connection that a test wrote its request to.
func readResponse(t testing.TB, conn net.Conn) (r reply) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if r.Raw, err = io.ReadAll(resp.Body); err == nil {
		err = json.Unmarshal(r.Raw, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Status, r.Header = resp.StatusCode, resp.Header
	return r
}

// awaitObject returns once the service has begun to store something of an upload. Only the folder tells.
func (s *service) awaitObject(uploadID string) {
	s.t.Helper()
	folder := filepath.Join(s.data, "blobs", "uploads", uploadID)
	for deadline := time.Now().Add(2 * time.Minute); len(files(s.t, folder)) == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			s.t.Fatal("no object appeared")
		}
	}
}
