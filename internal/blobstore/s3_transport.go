package blobstore

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// newS3Transport speaks HTTP/1.1 to a service that may be slow, half-open or gone. Nothing waits longer than stall for a
// connection, for a written byte to leave, for the head of an answer, or for the next byte of its body. A reader or writer of ours
// that takes its time is no stall.
func newS3Transport(stall time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: min(5*time.Second, stall), KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stallConn{conn, stall}, nil
		},
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   stall,
		ResponseHeaderTimeout: stall,
		ExpectContinueTimeout: min(stall, max(time.Second, stall/10)),
		IdleConnTimeout:       20 * time.Second,
		MaxIdleConnsPerHost:   64,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        64 << 10,
		DisableCompression:    true,
	}
}

// stallConn gives up a write that does not get through.
type stallConn struct {
	net.Conn
	stall time.Duration
}

func (c *stallConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// s3RoundTripper asks before it sends the body of a PUT, which cannot be sent again: what the service refuses at once (throttling, a
// taken name) and connections that it has closed meanwhile then cost no byte of the body. It watches the bodies of answers.
type s3RoundTripper struct {
	next  http.RoundTripper
	stall time.Duration
}

func (t s3RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	if r.Method == http.MethodPut && r.ContentLength > 0 {
		r.Header = r.Header.Clone()
		r.Header.Set("Expect", "100-continue") // not among the signed headers
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &stallBody{body: resp.Body, stall: t.stall, cancel: cancel}
	return resp, nil
}

// stallBody ends its request when a read gets nothing in time.
type stallBody struct {
	body   io.ReadCloser
	stall  time.Duration
	cancel context.CancelFunc
}

func (b *stallBody) Read(p []byte) (int, error) {
	late := time.AfterFunc(b.stall, b.cancel)
	n, err := b.body.Read(p)
	if !late.Stop() && err != nil {
		err = errStalled
	}
	return n, err
}

func (b *stallBody) Close() error {
	err := b.body.Close()
	b.cancel()
	return err
}
