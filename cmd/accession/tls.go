package main

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is read from its files again when they change, so that a renewed one is served without a restart. Files that
// cannot be used leave the one before in place.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    [2]fileState // of the files when they were last looked into
	usable  bool         // what was seen is what is served
	tried   time.Time
}

// certificateRetry is how often files that cannot be used are looked into again although they look the same.
const certificateRetry = time.Second

// fileState tells whether a file was written or replaced.
type fileState struct {
	info fs.FileInfo
	err  bool
}

func stateOf(path string) fileState {
	info, err := os.Stat(path) // what a symbolic link leads to: container platforms replace the link
	return fileState{info, err != nil}
}

func (f fileState) same(g fileState) bool {
	if f.err || g.err {
		return f.err == g.err
	}
	return f.info.Size() == g.info.Size() && f.info.ModTime().Equal(g.info.ModTime()) && os.SameFile(f.info, g.info)
}

// openCertificate reads the pair once; it must be usable then.
func openCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, seen: [2]fileState{stateOf(certFile), stateOf(keyFile)}, usable: true}
	var err error
	if c.current, err = loadCertificate(certFile, keyFile); err != nil {
		return nil, err
	}
	return c, nil
}

// loadCertificate reads a pair that belongs together and has not expired.
func loadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the certificate of %s expired on %s", certFile, pair.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return &pair, nil
}

// config for a listener: Go's defaults (TLS 1.2 and newer), HTTP/2 preferred.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.get}
}

// get is the certificate for a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := [2]fileState{stateOf(c.certFile), stateOf(c.keyFile)} // before they are read: what changes meanwhile is seen next time
	changed := !now[0].same(c.seen[0]) || !now[1].same(c.seen[1])
	if !changed && (c.usable || time.Since(c.tried) < certificateRetry) {
		return c.current, nil
	}
	c.seen, c.tried = now, time.Now()
	renewed, err := loadCertificate(c.certFile, c.keyFile)
	c.usable = err == nil
	switch {
	case err == nil:
		c.current = renewed
		c.log.Info("certificate loaded", "subject", renewed.Leaf.Subject.String(), "not_after", renewed.Leaf.NotAfter.UTC())
	case changed:
		c.log.Warn("THE CERTIFICATE'S FILES CHANGED AND CANNOT BE USED: the one before goes on", "error", err, "not_after", c.current.Leaf.NotAfter.UTC())
	}
	return c.current, nil
}
