package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair is a self-signed certificate with its key, both as PEM.
func pair(t *testing.T, name string, until time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until, DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// put replaces a file the way renewers do.
func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// shows does a handshake and returns the name in the certificate.
func shows(t *testing.T, c *certificate, protocols ...string) string {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	server := tls.Server(ours, c.config())
	ended := make(chan error, 1)
	go func() { ended <- server.Handshake() }()
	client := tls.Client(theirs, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols, MaxVersion: tls.VersionTLS12}) // the name is what the test looks at
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return client.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestCertificateIsReadAnewWhenItsFilesChange(t *testing.T) {
	var log bytes.Buffer
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	year := time.Now().Add(365 * 24 * time.Hour)
	cert, key := pair(t, "first.example", year)
	put(t, certFile, cert)
	put(t, keyFile, key)
	c, err := openCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	sees := func(name, why string) {
		t.Helper()
		if got := shows(t, c); got != name {
			t.Errorf("%s: %s is served, want %s", why, got, name)
		}
	}
	sees("first.example", "at the start")

	cert, key = pair(t, "second.example", year)
	put(t, certFile, cert)
	sees("first.example", "certificate without its key")
	sees("first.example", "the same again")
	if n := strings.Count(log.String(), "CANNOT BE USED"); n != 1 {
		t.Errorf("warned %d times of one change:\n%s", n, log.String())
	}
	put(t, keyFile, key)
	sees("second.example", "both are there")

	for why, broken := range map[string][]byte{"empty": nil, "no PEM": []byte("hello"), "half": cert[:len(cert)/2]} {
		put(t, certFile, broken)
		sees("second.example", why)
	}
	expired, expiredKey := pair(t, "expired.example", time.Now().Add(-time.Hour))
	put(t, keyFile, expiredKey)
	put(t, certFile, expired)
	sees("second.example", "expired")
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	sees("second.example", "removed")

	// A folder that is replaced as a whole, by a link, as container platforms do.
	third, thirdKey := pair(t, "third.example", year)
	other := t.TempDir()
	put(t, filepath.Join(other, "tls.crt"), third)
	put(t, filepath.Join(other, "tls.key"), thirdKey)
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join(other, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	sees("third.example", "links")
	if strings.Contains(log.String(), "PRIVATE") {
		t.Error("the log has a key in it")
	}
}

// Nothing of the files changed that one could see, and yet they can be used now: a key whose mode was put right.
func TestCertificateThatCannotBeUsedIsTriedAgain(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	cert, key := pair(t, "first.example", time.Now().Add(time.Hour))
	put(t, certFile, cert)
	put(t, keyFile, key)
	c, err := openCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	cert, key = pair(t, "second.example", time.Now().Add(time.Hour))
	put(t, certFile, cert)
	put(t, keyFile, key)
	c.seen, c.usable, c.tried = [2]fileState{stateOf(certFile), stateOf(keyFile)}, false, time.Now().Add(-2*certificateRetry)
	if got := shows(t, c); got != "second.example" {
		t.Errorf("%s is served", got)
	}
}

func TestSettingsOfTLS(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		put(t, path, content)
		return path
	}
	cert, key := pair(t, "custody.example", time.Now().Add(time.Hour))
	_, foreign := pair(t, "custody.example", time.Now().Add(time.Hour))
	old, oldKey := pair(t, "custody.example", time.Now().Add(-time.Hour))
	certFile, keyFile := file("tls.crt", cert), file("tls.key", key)
	s, err := checked(t, map[string]string{"ACCESSION_TLS_CERT": certFile, "ACCESSION_TLS_KEY": keyFile})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.baseURL(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8443}); got != "https://127.0.0.1:8443" {
		t.Errorf("base URL %s", got)
	}
	for name, c := range map[string]struct{ cert, key, base, says string }{
		"a foreign key": {certFile, file("foreign.key", foreign), "", "private key does not match"},
		"expired":       {file("old.crt", old), file("old.key", oldKey), "", "expired on"},
		"missing":       {folder + "/nothing", keyFile, "", "no such file"},
		"plain base":    {certFile, keyFile, "http://custody.example", "ACCESSION_BASE_URL must begin with https://"},
	} {
		_, err := checked(t, map[string]string{"ACCESSION_TLS_CERT": c.cert, "ACCESSION_TLS_KEY": c.key, "ACCESSION_BASE_URL": c.base})
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
	}
}
