package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/client"
)

const (
	organization = "requests"
	textBytes    = 2 << 10 // of a customer's text
	crowd        = 64      // clients at once
	form         = "application/x-www-form-urlencoded"
)

// service is a running `accession serve` with a clamd of its own, on test signatures.
type service struct {
	process
	url   string
	admin string
}

func (b bench) serve(ctx context.Context, data string) (*service, error) {
	signatures, err := filepath.Abs("testdata/clamav")
	if err != nil {
		return nil, err
	}
	s := &service{admin: rand.Text() + rand.Text()}
	cmd := exec.CommandContext(ctx, b.binary, "serve", "--data", data, "--listen", "127.0.0.1:0", "--rate-limits", "off", "--request-slots", fmt.Sprintf("token=%d", 2*crowd), "--clamav-database", signatures, "--quota-bytes", fmt.Sprint(int64(1)<<40))
	cmd.Env = append(os.Environ(), "ACCESSION_ADMIN_TOKEN="+s.admin)
	line, _, err := s.begin(cmd, data+".log")
	if err != nil {
		return nil, err
	}
	s.url = server.URL(line)
	return s, nil
}

// row is a job and what it is measured beside.
type row struct {
	name, title string
	reference   string
	size        int // of an answer in bytes
	load        load
	durable     bool
	reach       string // the ratio
	calm        string // p99 at half the rate
	sharing     string // requests per sync
}

// besides are the references as the table names them.
var besides = map[string]string{
	"json": "a bare handler", "not-modified": "a bare handler", "commits": "the engine's own durable commits",
	"signature": "a bare handler with one such signature", "mcp": "the SDK's bare server with a constant tool",
}

var rowNames = []string{"status", "not-modified", "introspection", "context", "upload", "token", "mcp"}

// issue makes a credential of the organization.
func (s *service) issue(ctx context.Context, role string) (*client.Credential, error) {
	manager, err := client.New(s.url, client.WithAdminToken(s.admin))
	if err != nil {
		return nil, err
	}
	return manager.IssueCredential(ctx, client.IssueRequest{OrgID: organization, Role: role})
}

func consent() client.Consent {
	return client.Consent{
		Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.AgreementVersion, AcceptedAt: time.Now().UTC(),
		TextSHA256: client.TextSHA256([]byte(client.AgreementText)), ConsentingUserID: "requests", ConsentingUserEmail: "requests@example.org",
	}
}

// text is 2 KiB that a customer might hand in.
func text() string {
	return strings.Repeat("The harbour was dredged in May. It is open to ships again. ", textBytes/59+1)[:textBytes]
}

func (s *service) rows(ctx context.Context) ([]row, error) {
	writer, err := s.issue(ctx, client.RoleUpload)
	if err != nil {
		return nil, err
	}
	reader, err := s.issue(ctx, client.RoleAIReader)
	if err != nil {
		return nil, err
	}
	api, err := client.New(s.url, client.WithToken(writer.Token))
	if err != nil {
		return nil, err
	}
	submission := client.TextSubmission{Filename: "note.txt", Payload: text(), Visibility: client.VisibilityAIReadable, Consent: consent()}
	kept, err := api.SubmitText(ctx, organization, submission)
	if err != nil {
		return nil, err
	}
	upload, err := json.Marshal(submission)
	if err != nil {
		return nil, err
	}
	credentials := url.Values{"client_id": {reader.CredentialID}, "client_secret": {reader.Token}}
	tokenForm := credentials.Encode() + "&grant_type=client_credentials"
	token := post("/oauth/token", form, tokenForm)
	_, answer, err := s.once(token)
	if err != nil {
		return nil, err
	}
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(answer, &granted); err != nil {
		return nil, err
	}
	status := "/api/v1/organizations/" + organization + "/partner-uploads/" + kept.UploadID
	header, _, err := s.once(get(status, writer.Token))
	if err != nil {
		return nil, err
	}
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_ai_context","arguments":{"org_id":%q,"upload_id":%q}}}`, organization, kept.UploadID)
	rows := []row{
		{name: "status", title: "status read", reference: "json", reach: "≥ 0.6", calm: "≤ 10 ms", load: load{Requests: []request{get(status, writer.Token)}}},
		{name: "not-modified", title: "status read, 304 by ETag", reference: "not-modified", reach: "≥ 0.6", calm: "≤ 10 ms", load: load{Want: 304, Requests: []request{get(status, writer.Token, "If-None-Match: "+header.Get("ETag")+"\r\n")}}},
		{name: "introspection", title: "token introspection", reference: "json", reach: "≥ 0.6", calm: "≤ 10 ms", load: load{Requests: []request{post("/oauth/introspect", form, credentials.Encode()+"&token="+granted.AccessToken)}}},
		{name: "context", title: "AI context with its durable record", reference: "json", reach: "≥ 0.5", durable: true, load: load{Requests: []request{get("/api/v1/organizations/"+organization+"/ai-context/"+kept.UploadID, reader.Token)}}},
		{name: "upload", title: "customer upload, 2 KiB", reference: "commits", reach: "≥ 0.5", sharing: "> 1", durable: true, load: load{Want: 201, Requests: []request{
			post("/api/v1/organizations/"+organization+"/customer-uploads", "application/json", string(upload), "x-api-key: "+writer.Token+"\r\nIdempotency-Key: "+keyPlace+"\r\n"),
		}}},
		{name: "token", title: "OAuth token", reference: "signature", reach: "≥ 0.5", load: load{Requests: []request{token}}},
		{name: "mcp", title: "MCP get_ai_context with its record", reference: "mcp", reach: "≥ 0.6", durable: true, load: load{Requests: []request{post("/mcp", "application/json", call,
			"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2025-11-25\r\nx-api-key: "+reader.Token+"\r\n")}}},
	}
	for i := range rows {
		r := &rows[i]
		r.load.Address, r.load.Clients = strings.TrimPrefix(s.url, "http://"), crowd
		if r.load.Want == 0 {
			r.load.Want = http.StatusOK
		}
		if r.name == "upload" {
			continue // it is not sent where it is not asked for
		}
		_, answer, err := s.once(r.load.Requests[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		r.size = len(answer)
	}
	return rows, nil
}

// once sends a request as the generator does.
func (s *service) once(r request) (http.Header, []byte, error) {
	raw := r.Head + "Content-Length: " + fmt.Sprint(len(r.Body)) + "\r\n\r\n" + r.Body
	method, rest, _ := strings.Cut(raw, " ")
	path, rest, _ := strings.Cut(rest, " ")
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader([]byte(r.Body)))
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(rest) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name != "Host" && name != "Content-Length" {
			req.Header.Set(name, value)
		} else if line == "\r\n" {
			break
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return resp.Header, answer, err
}
