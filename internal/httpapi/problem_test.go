package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestRoomErrors(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		err    error
		status int
		code   custody.Code
		retry  string
	}{
		"as the catalogue says": {custody.UploadNotFound(), 404, custody.CodeUploadNotFound, ""},
		"wrapped":               {fmt.Errorf("completing: %w", custody.Errorf(custody.CodeDigestMismatch, "differs")), 409, custody.CodeDigestMismatch, ""},
		"in progress":           {custody.Errorf(custody.CodeIdempotencyInProgress, "running"), 409, custody.CodeIdempotencyInProgress, "1"},
		"unavailable":           {custody.Unavailable(errors.New("secret")), 503, custody.CodeUnavailable, "5"},
		"no advice given":       {custody.Errorf(custody.CodeUnavailable, "later"), 503, custody.CodeUnavailable, "5"},
		"rounded up":            {&custody.Error{Code: custody.CodeUnavailable, Message: "later", RetryAfter: 6100 * time.Millisecond}, 503, custody.CodeUnavailable, "7"},
		"anything else":         {errors.New("secret"), 500, custody.CodeInternal, ""},
		"canceled by itself":    {fmt.Errorf("secret: %w", context.Canceled), 500, custody.CodeInternal, ""},
		"details beyond JSON":   {custody.Errorf(custody.CodeDigestMismatch, "differs").With("x", func() {}), 409, custody.CodeDigestMismatch, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b.t, b.err = t, c.err
			r := b.post(partners+"/complete", completeJSON, asUp)
			r.wants(t, c.status, c.code)
			if r.Header.Get("Retry-After") != c.retry {
				t.Errorf("Retry-After %q, want %q", r.Header.Get("Retry-After"), c.retry)
			}
			if strings.Contains(string(r.raw), "secret") {
				t.Errorf("the cause leaks: %s", r.raw)
			}
			if c.status >= 500 && !strings.Contains(b.log.String(), `msg="request failed" request_id=`+r.body.RequestID) {
				t.Error("the cause is not logged")
			}
		})
	}
	b.t, b.err = t, custody.Errorf(custody.CodeStorageFull, "full")
	b.call("PUT", oneUpload+"/parts/1", strings.NewReader("x"), asUp, key, asB).wants(t, 507, custody.CodeStorageFull)
}

func TestPanic(t *testing.T) {
	b := newBench(t)
	b.awaited = func(context.Context) (custody.UploadState, error) { panic("hunter2") }
	r := b.call("GET", oneUpload, nil, asUp, "Prefer: wait=1")
	r.wants(t, 500, custody.CodeInternal)
	if strings.Contains(string(r.raw), "hunter2") || strings.Contains(string(r.raw), "goroutine") || r.Close {
		t.Errorf("close %v, body %s", r.Close, r.raw)
	}
	b.stop()
	if log := b.log.String(); !strings.Contains(log, r.body.RequestID) || !strings.Contains(log, "status=500") {
		t.Errorf("log %s", log)
	}
}

func TestBodyLimits(t *testing.T) {
	b := newBench(t)
	padded := func(n int) io.Reader {
		return strings.NewReader(initiateJSON[:1] + strings.Repeat(" ", n-len(initiateJSON)) + initiateJSON[1:])
	}
	for _, headers := range [][]string{{asUp, asJ, key}, {asUp, asJ, key, chunked}} {
		b.call("POST", partners+"/initiate", padded(2<<20), headers...).succeeds(t, 200)
		b.call("POST", partners+"/initiate", padded(2<<20+1), headers...).wants(t, 413, custody.CodeBodyTooLarge)
	}
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json", ""} {
		b.call("POST", partners+"/initiate", strings.NewReader(initiateJSON), asUp, key, "Content-Type: "+contentType).wants(t, 415, custody.CodeMediaTypeUnsupported)
	}
	b.call("POST", partners+"/initiate", strings.NewReader(initiateJSON), asUp, key, asJ, "Content-Encoding: gzip").wants(t, 415, custody.CodeMediaTypeUnsupported)
	b.call("POST", partners+"/initiate", strings.NewReader(initiateJSON), asUp, key, "Content-Type: Application/JSON; Charset=UTF-8").succeeds(t, 200)

	b.call("GET", "/healthz", nil, "X-Large: "+strings.Repeat("x", 33<<10)).wants(t, 431, custody.CodeHeadersTooLarge)
	b.call("GET", "/healthz", nil, "X-Large: "+strings.Repeat("x", 31<<10)).succeeds(t, 200)
}

func TestStalledJSON(t *testing.T) {
	b := newBench(t, func(c *Config) { c.BodyTimeout = 100 * time.Millisecond })
	body, sender := io.Pipe()
	defer sender.Close()
	r := b.callLength("POST", partners+"/initiate", body, 1000, asUp, key, asJ)
	r.wants(t, 408, custody.CodeRequestTimeout)
	if !r.Close {
		t.Error("the connection stays open")
	}
}

// exchangeRaw sends request on a connection of its own and reads the answer.
func (b *bench) exchangeRaw(request string, halfClose bool) (*http.Response, error) {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil { // a hang is a failure
		b.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		b.t.Fatal(err)
	}
	if halfClose {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			b.t.Fatal(err)
		}
	}
	return http.ReadResponse(bufio.NewReader(conn), nil)
}

func rawRequest(method, path, contentType, body string, length int) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nIdempotency-Key: 12345678\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, uploaderToken, contentType, length, body)
}

func TestBodyEndsEarly(t *testing.T) {
	b := newBench(t)
	for _, request := range []string{
		rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", "half", 9),
		rawRequest("POST", partners+"/initiate", "application/json", "half", 9),
	} {
		res, err := b.exchangeRaw(request, true)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 400 {
			t.Errorf("half a body answered %d", res.StatusCode)
		}
	}
	if b.got != nil {
		t.Errorf("it reached the room: %v", b.got)
	}
}

func TestPartWithoutLength(t *testing.T) {
	b := newBench(t)
	request := strings.Replace(rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", "", 0), "Content-Length: 0\r\n", "", 1)
	res, err := b.exchangeRaw(request, false)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 411 {
		t.Errorf("answered %d", res.StatusCode)
	}
}

// The deadline of a body's arrival must not end the work that follows it; least of all where there is no body to arrive.
func TestWorkOutlivesBodyDeadlines(t *testing.T) {
	const deadline = 50 * time.Millisecond
	for _, request := range []string{
		rawRequest("POST", partners+"/complete", "application/json", completeJSON, len(completeJSON)),
		rawRequest("POST", oneUpload+"/withdraw", "application/json", "", 0),
		rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", "x", 1),
		rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", "", 0),
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &rooms{work: func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(4 * deadline): // the work
					return nil
				}
			}}
			connect := standing(t, b, Config{BodyTimeout: deadline, PartIdleTimeout: deadline}, func(*http.Server) {})
			res, err := exchanged(connect(), request)
			if err != nil {
				t.Fatalf("the work was cut: %v\n%.60s", err, request)
			}
			if res.StatusCode != 200 {
				t.Errorf("answered %d\n%.60s", res.StatusCode, request)
			}
		})
	}
}

// A body that nobody reads and nobody finishes must not hold the answer, or the connection.
func TestRefusedSenderStalls(t *testing.T) {
	b := newBench(t, func(c *Config) { c.PartIdleTimeout = 100 * time.Millisecond })
	request := strings.Replace(rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", "half", 9), uploaderToken, "acc_x", 1)
	res, err := b.exchangeRaw(request, false)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 401 || !res.Close {
		t.Errorf("answered %d, close %v", res.StatusCode, res.Close)
	}
}
