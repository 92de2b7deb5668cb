package httpapi

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// secured is a bench behind TLS, and the certificates that a client trusts there.
func secured(t *testing.T) (b *bench, address string, trusted *x509.CertPool) {
	t.Helper()
	b = newBench(t)
	handler, err := New(Config{BaseURL: b.url, MaxPartBytes: 1 << 20, Sandbox: newSandbox(t, nil), Log: slog.New(slog.DiscardHandler)}, b, b, b, b, b, b, b)
	if err != nil {
		t.Fatal(err)
	}
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	trusted = x509.NewCertPool()
	trusted.AddCert(borrowed.Certificate())
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	config := &tls.Config{Certificates: borrowed.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	server.Listener = Listener(TLS(server.Listener, config, slog.New(slog.DiscardHandler), nil), slog.New(slog.DiscardHandler), nil)
	server.Start()
	t.Cleanup(server.Close)
	return b, server.Listener.Addr().String(), trusted
}

func trusting(t *testing.T, trusted *x509.CertPool, http2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: http2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestPartsOverTLS(t *testing.T) {
	b, address, trusted := secured(t)
	for proto, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		client := trusting(t, trusted, http2)
		part := bytes.Repeat([]byte("sealed "), 100_000)
		for name, c := range map[string]struct {
			length int64
			status int
		}{"whole": {int64(len(part)), 200}, "without a length": {-1, 411}, "too large": {3 << 20, 413}} {
			b.part = nil
			var body io.Reader = bytes.NewReader(part)
			if c.length > int64(len(part)) {
				body = bytes.NewReader(make([]byte, c.length))
			}
			req, err := http.NewRequest("PUT", "https://"+address+oneUpload+"/parts/2", io.NopCloser(body))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = c.length
			req.Header.Set("Content-Type", "application/octet-stream")
			req.Header.Set("Idempotency-Key", "part-over-tls")
			req.Header.Set("X-Api-Key", uploaderToken)
			res, err := client.Do(req)
			if err != nil {
				t.Errorf("%s, %s: %v", proto, name, err)
				continue
			}
			raw, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != c.status || res.Proto != proto {
				t.Errorf("%s, %s: %s %d %s %v, want %d", proto, name, res.Proto, res.StatusCode, raw, err, c.status)
			}
			if c.status == 200 && !bytes.Equal(b.part, part) {
				t.Errorf("%s: %d bytes arrived, want %d", proto, len(b.part), len(part))
			}
		}
	}
}

// What is no request over HTTP/1.1 is refused in the form of the contract behind TLS, too; and so is a peer without TLS.
func TestRefusalsOfSecuredListener(t *testing.T) {
	_, address, trusted := secured(t)
	encrypted := func() (net.Conn, error) {
		return tls.Dial("tcp", address, &tls.Config{RootCAs: trusted, NextProtos: []string{"http/1.1"}})
	}
	plain := func() (net.Conn, error) { return net.Dial("tcp", address) }
	for name, c := range map[string]struct {
		dial          func() (net.Conn, error)
		request, says string
	}{
		"no HTTP":     {encrypted, "hello\r\n\r\n", "can be read"},
		"without TLS": {plain, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "speaks HTTPS"},
	} {
		conn, err := c.dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, c.request); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		conn.Close()
		_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
		var said struct {
			Code    custody.Code
			Message string
		}
		if err != nil || json.Unmarshal([]byte(body), &said) != nil || said.Code != custody.CodeInvalidRequest || !strings.Contains(said.Message, c.says) {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
	}
	conn, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0, 1, 2, 3, 4, 5, 6, 7}); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(conn); bytes.Contains(answer, []byte("HTTP")) {
		t.Errorf("bytes that are neither were answered %q", answer)
	}
	res, err := trusting(t, trusted, true).Get(fmt.Sprintf("https://%s/healthz", address)) // whoever stalls holds up nobody
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

// A listener that closes leaves nobody waiting in a handshake.
func TestSecuredListenerCloses(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := TLS(inner, &tls.Config{}, slog.New(slog.DiscardHandler), nil)
	silent, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err == nil {
		t.Error("it accepted after its end")
	}
	if n, err := silent.Read(make([]byte, 1)); err == nil || n != 0 {
		t.Error("a peer in its handshake was not let go")
	}
}

func TestProbesAnswerNothingElse(t *testing.T) {
	handler := NewProbes(Config{BaseURL: "http://worker", Log: slog.New(slog.DiscardHandler)}, Check{Name: "store", Readiness: newBench(t)})
	for path, status := range map[string]int{healthPath: 200, readyPath: 200, "/api/v1/ai/capabilities": 404, "/api/v1/ai/openapi.json": 404, "/docs": 404, "/openapi.json": 404, base + "/quota": 404} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != status || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
