package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.crt")}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "e2e"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der := a.sign(template)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(a.file, "CERTIFICATE", der)
	return a
}

// sign makes the authority's own certificate first, then those of others, with a.key as their key.
func (a *authority) sign(template *x509.Certificate) []byte {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer, a.key = template, key, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.cert != nil {
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			a.t.Fatal(err)
		}
		a.write(filepath.Join(filepath.Dir(a.file), "tls.key"), "PRIVATE KEY", secret)
	}
	return der
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		a.t.Fatal(err)
	}
}

// issue replaces the service's certificate and key.
func (a *authority) issue(name string) (certFile, keyFile string) {
	a.t.Helper()
	certFile, keyFile = filepath.Join(filepath.Dir(a.file), "tls.crt"), filepath.Join(filepath.Dir(a.file), "tls.key")
	a.write(certFile, "CERTIFICATE", a.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}))
	return certFile, keyFile
}

// client trusts the authority; each has connections of its own.
func (a *authority) client(http2 bool) *http.Client {
	trusted := x509.NewCertPool()
	trusted.AddCert(a.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: http2}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// shown is the name in the certificate of a new connection to the service.
func (a *authority) shown(s *service) string {
	a.t.Helper()
	resp, err := a.client(true).Get(s.url + "/healthz")
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		a.t.Errorf("%s was spoken", resp.Proto)
	}
	return resp.TLS.PeerCertificates[0].Subject.CommonName
}

func TestServiceSpeaksTLSAndTakesRenewedCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	certFile, keyFile := a.issue("first")
	s := launch(t, options{flags: []string{"--tls-cert", certFile, "--tls-key", keyFile, "--part-size-bytes", "65536"}})
	plain := s.url
	s.url, s.http = strings.Replace(plain, "http://", "https://", 1), a.client(true)
	s.awaitReady()
	if !strings.Contains(s.log.String(), "accession is ready at "+s.url) {
		t.Errorf("the base URL is not https: %s", s.log)
	}
	p := s.partner("harbour")
	if said, _, exit := s.cli(p.token, "doctor", "client", "--server", plain); exit != 1 || !strings.Contains(said, "write https://") {
		t.Errorf("doctor of the address without TLS: exit %d, %s", exit, said)
	}
	content := bytes.Repeat(note("sealed-lane"), 3000)
	parts := cut(content, 65536)
	id := p.initiate("note.txt", "text/plain", len(content))
	p.part(id, 1, parts[0]).want(t, 200, "")

	// A renewal in the middle of an upload: the connection that is there goes on, new ones see the new certificate.
	a.issue("second")
	if name := a.shown(s); name != "second" {
		t.Errorf("after the renewal %s is shown", name)
	}
	p.part(id, 2, parts[1]).want(t, 200, "")
	if err := os.WriteFile(certFile, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if name := a.shown(s); name != "second" {
		t.Errorf("with broken files %s is shown", name)
	}
	s.awaitLog("THE CERTIFICATE'S FILES CHANGED AND CANNOT BE USED")
	a.issue("third")
	if name := a.shown(s); name != "third" {
		t.Errorf("after the repair %s is shown", name)
	}
	for i := 2; i < len(parts); i++ {
		s.http = a.client(i%2 == 0) // HTTP/2 and HTTP/1.1
		p.part(id, i+1, parts[i]).want(t, 200, "")
	}
	r := p.complete(id, parts).want(t, 202, "")
	if at := r.Header.Get("Location"); !strings.HasPrefix(at, s.url) {
		t.Errorf("Location %s", at)
	}
	p.wantReady(id)

	// The product's own uploader, over HTTP/2.
	c, err := client.New(s.url, client.WithToken(p.token), client.WithHTTPClient(a.client(true)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	binary := noise(5*65536+7, 91)
	sending := client.NewTransfer("harbour", client.InitiateRequest{Filename: "noise.bin", ContentType: "application/octet-stream", SizeBytes: int64(len(binary)), Consent: client.Consent{
		Accepted: true, AgreementVersion: "beta-1", ConsentVersion: "consent-1", TextSHA256: hexSum([]byte("agreement")),
		ConsentingUserID: "user-7", ConsentingUserEmail: "consenting.person@example.com", AcceptedAt: time.Now(),
	}})
	if done, err := (&client.Uploader{Client: c}).Upload(ctx, sending, bytes.NewReader(binary)); err != nil || done.SHA256 != hexSum(binary) {
		t.Errorf("uploader: %+v, %v", done, err)
	}

	// Whoever speaks no TLS is told, in the form of the contract.
	resp, err := http.Get(plain + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 400 || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("over HTTP: %s %v", resp.Status, resp.Header)
	}
	if exit := s.stop(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	exit, said := refused(t, nil, "--data", t.TempDir(), "--tls-cert", keyFile, "--tls-key", certFile)
	if exit != 2 || !strings.Contains(said, "--tls-cert cannot be used") || strings.Contains(said, "PRIVATE") {
		t.Errorf("exit %d, said %s", exit, said)
	}
}
