package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
)

// What never becomes a request is refused in the form of the contract too.
func TestRefusalsBeforeTheDoor(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		request string
		status  int
		code    custody.Code
	}{
		"no HTTP":                     {"hello\r\n\r\n", 400, custody.CodeInvalidRequest},
		"no host":                     {"GET /healthz HTTP/1.1\r\n\r\n", 400, custody.CodeInvalidRequest},
		"two hosts":                   {"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, custody.CodeInvalidRequest},
		"broken header":               {"GET /healthz HTTP/1.1\r\nHost: x\r\nBad Header: secret\r\n\r\n", 400, custody.CodeInvalidRequest},
		"control in a header":         {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\x01b\r\n\r\n", 400, custody.CodeInvalidRequest},
		"two lengths":                 {"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, custody.CodeInvalidRequest},
		"unknown transfer encoding":   {"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400, custody.CodeInvalidRequest},
		"unknown version":             {"GET /healthz HTTP/3.7\r\nHost: x\r\n\r\n", 400, custody.CodeInvalidRequest},
		"unknown expectation":         {"POST /healthz HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", 400, custody.CodeInvalidRequest},
		"headers past every limit":    {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", 431, custody.CodeHeadersTooLarge},
		"headers past the contract's": {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", 431, custody.CodeHeadersTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			res, err := b.exchangeRaw(c.request, false)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			out := reply{Response: res, raw: raw}
			if err := json.Unmarshal(raw, &out.body); err != nil {
				t.Fatalf("%d %q: %v", res.StatusCode, raw, err)
			}
			out.wants(t, c.status, c.code)
			if res.Header.Get("X-Request-Id") != out.body.RequestID || res.Header.Get("Content-Type") != "application/json" || strings.Contains(string(raw), "secret") {
				t.Errorf("%v %s", res.Header, raw)
			}
		})
	}
	b.t = t
	b.stop()
	if !strings.Contains(b.log.String(), "code=headers_too_large") {
		t.Error("a refusal is not logged")
	}
}

// One request has one answer, the server-wide OPTIONS too: a second one would be taken for the answer to whoever asks next on the connection.
func TestOptionsOfTheServer(t *testing.T) {
	b := newBench(t)
	answers := b.answers("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" + "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if len(answers) != 2 || answers[0].StatusCode != 404 || answers[1].StatusCode != 200 {
		t.Fatalf("answers: %v", answers)
	}
	if h := answers[0].Header; h.Get("Content-Type") != "application/json" || h.Get("X-Request-Id") == "" {
		t.Errorf("not the form of the contract: %v", h)
	}
	b.stop()
	if !strings.Contains(b.log.String(), "code=route_not_found") {
		t.Error("it is not logged")
	}
}

func TestHeadersThatDoNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := standing(t, &rooms{}, Config{}, func(s *http.Server) { s.ReadHeaderTimeout, s.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond })
		res, err := exchanged(connect(), "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow")
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 408 || !res.Close || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("answered %d %v", res.StatusCode, res.Header)
		}
		// Nobody asked: an idle connection ends without an answer.
		if answer, err := io.ReadAll(connect()); len(answer) > 0 || err != nil {
			t.Errorf("an idle connection was answered %q, %v", answer, err)
		}
	})
}
