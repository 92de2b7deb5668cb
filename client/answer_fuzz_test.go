package client_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// canned answers every request with the same bytes.
type canned struct{ raw []byte }

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReader(bytes.NewReader(c.raw)), r)
}

// Whatever answers at the service's address, the client ends with a result that the answer had, or an error: of the service with a
// delay that somebody can wait for, or another one; none repeats the credential, and no answer that is no success is a result.
func FuzzServicesAnswer(f *testing.F) {
	const secret = "acc_secret-of-the-client"
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + `{"request_id":"req_1","trace_id":"t","data":{"upload_id":"up_1","status":"READY","sequence":7,"gates":[{"name":"integrity","state":"passed","detail":{"a":[1,{"b":null}]}}],"created_at":"2026-11-20T09:30:00.000Z"}}`,
		"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\n\r\n" + `{"code":"rate_limited","message":"slow","details":{"fields":[{"path":"/a","reason":"b"},7,null]}}`,
		"HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n\r\n", "HTTP/1.1 503 No\r\nRetry-After: 9223372036854775807\r\n\r\n<html>", "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n" + `{"data":null}`, "HTTP/1.1 200 OK\r\n\r\n" + `{"data":{"sequence":"7"}}`, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "", "SSH-2.0-x\r\n",
		"HTTP/1.1 200 OK\r\n\r\n" + `{"access_token":"t","expires_in":9223372036854775807,"data":{}}`, "HTTP/1.1 401 No\r\n\r\n" + `{"code":"credential_invalid","message":"` + secret + `"}`,
		"HTTP/1.1 200 OK\r\n\r\n" + `{"access_token":"t\r\nHost: evil","expires_in":-9223372036854775808}`,
	} {
		f.Add([]byte(answer))
	}
	service := &canned{}
	open := func(options ...client.Option) *client.Client {
		c, err := client.New("https://custody.example", append(options, client.WithHTTPClient(&http.Client{Transport: service}))...)
		if err != nil {
			f.Fatal(err)
		}
		return c
	}
	plain := open(client.WithToken(secret))
	f.Fuzz(func(t *testing.T, answer []byte) {
		service.raw = answer
		oauth := open(client.WithClientCredentials("cred_1", secret))
		ask := map[string]func() (any, error){
			"status":  func() (any, error) { return plain.UploadStatus(t.Context(), "org_1", "up_1", client.StatusOptions{}) },
			"quota":   func() (any, error) { return plain.Quota(t.Context(), "org_1") },
			"context": func() (any, error) { return plain.AIContext(t.Context(), "org_1", "up_1") },
			"keys":    func() (any, error) { return plain.KeySet(t.Context()) },
			"oauth":   func() (any, error) { return oauth.Quota(t.Context(), "org_1") },
		}
		for name, do := range ask {
			got, err := do()
			if err == nil {
				if !bytes.Contains(answer, []byte(" 2")) || fmt.Sprint(got) == "<nil>" {
					t.Errorf("%s: %q is %+v", name, answer, got)
				}
				if s, is := got.(*client.UploadStatus); is {
					for _, g := range s.Gates {
						_ = g.DetailText()
					}
				}
				continue
			}
			var refusal *client.Error
			var network *client.NetworkError
			switch {
			case errors.As(err, &refusal):
				if refusal.RetryAfter < 0 || refusal.RetryAfter > 24*time.Hour || refusal.Status >= 200 && refusal.Status <= 299 && name != "keys" && name != "oauth" {
					t.Errorf("%s: %q is %+v", name, answer, refusal)
				}
				_ = refusal.Fields()
			case errors.As(err, &network), errors.Is(err, client.ErrNotModified):
			case strings.Contains(err.Error(), secret) && !bytes.Contains(answer, []byte(secret)):
				t.Errorf("%s: the error holds the credential: %v", name, err)
			}
			_ = client.Retryable(err)
		}
	})
}

// pageSource is a chain that was copied by somebody.
type pageSource struct{ page client.EvidencePage }

func (s pageSource) Evidence(context.Context, client.EvidenceQuery) (*client.EvidencePage, error) {
	p := s.page
	return &p, nil
}

// Of a chain whose head was kept outside, the lines that verify are the ones that were written, whatever stands in the copy.
func FuzzChain(f *testing.F) {
	line := client.EvidenceLine{Position: 1, Audit: &client.AuditLine{AuditID: "aud_1", OrgID: "org_1", Action: "upload_initiated", PreviousHash: client.FirstHash}}
	raw, err := json.Marshal(line.Audit)
	if err != nil {
		f.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	line.Audit.LineHash = fmt.Sprintf("%x", sum)
	head := client.ChainHead{Position: 1, Hash: line.Audit.LineHash}
	good, err := json.Marshal(client.EvidencePage{Lines: []client.EvidenceLine{line}, Head: head})
	if err != nil {
		f.Fatal(err)
	}
	if r, err := client.VerifyChain(f.Context(), pageSource{client.EvidencePage{Lines: []client.EvidenceLine{line}, Head: head}}, "org_1", client.ChainAudit, head); err != nil || r.Finding != nil {
		f.Fatalf("the chain as it is: %+v, %v", r, err)
	}
	f.Add(good)
	f.Add(bytes.Replace(good, []byte("upload_initiated"), []byte("upload_withdrawn"), 1))
	f.Add([]byte(`{"lines":[{"position":1},{"position":-1}],"head":{"position":9223372036854775807}}`))
	f.Add([]byte(`{"lines":[],"head":{"position":1},"next_after":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var page client.EvidencePage
		if json.Unmarshal(raw, &page) != nil {
			return
		}
		if page.NextAfter != 0 && len(page.Lines) > 0 {
			page.NextAfter = 0 // one page alone
		}
		report, err := client.VerifyChain(t.Context(), pageSource{page}, "org_1", client.ChainAudit, head)
		if err != nil || report.Finding != nil {
			return
		}
		if len(page.Lines) < 1 || page.Lines[0].Audit == nil || *page.Lines[0].Audit != *line.Audit {
			t.Errorf("%q verifies: %+v", raw, report)
		}
	})
}

// An event is taken only with a signature that somebody with the secret made, over it, its id and a time of now.
func FuzzWebhookSignature(f *testing.F) {
	key := bytes.Repeat([]byte{9}, 32)
	secrets, now := []string{"whsec_" + base64.StdEncoding.EncodeToString(key)}, time.Unix(1_763_629_800, 0)
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, "evt_1.1763629800.{}")
	good := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	f.Add("evt_1", "1763629800", good, []byte("{}"))
	f.Add("evt_1", "1763629800", "v1, "+good+" v2,x", []byte("{}"))
	f.Add("evt_1", "+1763629800", good, []byte("{}"))
	f.Add("evt_1.1763629800", "-9223372036854775808", good, []byte{})
	f.Add("", "9223372036854775807", "v1,", []byte("{}"))
	f.Fuzz(func(t *testing.T, id, at, signature string, body []byte) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature}}
		err := client.VerifyWebhook(secrets, header, body, now, 0)
		if err != nil && !errors.Is(err, client.ErrSignature) {
			t.Error(err)
		}
		if err == nil && (id != "evt_1" || at != "1763629800" || string(body) != "{}" || !strings.Contains(signature, good)) {
			t.Errorf("%q at %q signed %q: %q is taken", id, at, signature, body)
		}
	})
}
