package httpapi

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	consentJSON = `{"accepted":true,"beta_agreement_version":"b1","ai_readable_use_consent_version":"c1","text_hash_sha256":"` +
		`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","consenting_user_id":"u1","consenting_user_email":"ada@example.org","accepted_at":"2026-11-20T10:30:00.1234+01:00"}`
	initiateJSON = `{"filename":"pump.pdf","content_type":"application/pdf","size_bytes":100,"consent":` + consentJSON + `}`
)

func TestInitiate(t *testing.T) {
	b := newBench(t)
	data := b.post(partners+"/initiate", initiateJSON, asUp, "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").succeeds(t, 200)
	want := map[string]any{"upload_id": "up_1", "part_size_bytes": 64.0, "status": "RECEIVING", "expires_at": "2026-11-21T09:30:00.000Z"}
	if !maps.Equal(data, want) {
		t.Errorf("data %v, want %v", data, want)
	}
	wantRes := custody.Reservation{OrgID: "org_1", Filename: "pump.pdf", ContentType: "application/pdf", SizeBytes: 100, Importance: custody.ImportanceNormal,
		Consent: custody.Consent{AgreementVersion: "b1", AIReadableVersion: "c1", TextHashSHA256: strings.Repeat("a", 64), ConsentingUserID: "u1",
			ConsentingEmail: "ada@example.org", AcceptedAt: time.Date(2026, 11, 20, 9, 30, 0, 123e6, time.UTC)}}
	got, _ := b.got.(custody.Reservation)
	if body, _ := got.Body.(map[string]any); body["filename"] != "pump.pdf" {
		t.Errorf("the room cannot look for claims in %v", got.Body)
	}
	if got.Body = nil; got != wantRes {
		t.Errorf("the room got %+v\nwant %+v", got, wantRes)
	}
	if b.caller.CredentialID != "cred_u" || b.caller.TraceID != "0af7651916cd43dd8448eb211c80319c" || !strings.HasPrefix(b.caller.RequestID, "req_") {
		t.Errorf("caller %+v", b.caller)
	}
	if b.key.Key != "key-12345" || b.key.Operation != custody.OpInitiateUpload || b.key.CredentialID != "cred_u" {
		t.Errorf("idempotency %+v", b.key)
	}
}

func TestRequestHashIsOfTheMeaning(t *testing.T) {
	b := newBench(t)
	hash := func(body string) string {
		b.post(partners+"/initiate", body, asUp).succeeds(t, 200)
		return b.key.RequestHash
	}
	first := hash(initiateJSON)
	if len(first) != 64 {
		t.Fatalf("hash %q", first)
	}
	if same := hash(" " + strings.Replace(initiateJSON, `"size_bytes":100`, `"importance":"normal", "future":1, "size_bytes": 100, "notes":null`, 1)); same != first {
		t.Error("white space, defaults and ignored properties change the hash")
	}
	if other := hash(strings.Replace(initiateJSON, `:100`, `:101`, 1)); other == first {
		t.Error("another size has the same hash")
	}
	if other := hash(strings.Replace(initiateJSON, `u1`, `u2`, 1)); other == first {
		t.Error("another consenting user has the same hash")
	}
	b.post(partners+"/complete", completeJSON, asUp).succeeds(t, 200)
	byBody := b.key.RequestHash
	b.post(oneUpload+"/complete", completeJSON, asUp).succeeds(t, 200)
	if b.key.RequestHash != byBody {
		t.Error("the two path forms of one request differ in hash")
	}
}

func TestInitiateRefusesFields(t *testing.T) {
	b := newBench(t)
	edit := func(old, new string) string { return strings.Replace(initiateJSON, old, new, 1) }
	for name, c := range map[string]struct {
		body  string
		code  custody.Code
		paths []string
	}{
		"no filename":         {edit(`"filename":"pump.pdf",`, ``), custody.CodeInvalidRequest, []string{"/filename"}},
		"empty filename":      {edit(`pump.pdf`, ``), custody.CodeInvalidRequest, []string{"/filename"}},
		"long filename":       {edit(`pump.pdf`, strings.Repeat("ä", 128)), custody.CodeInvalidRequest, []string{"/filename"}},
		"path as filename":    {edit(`pump.pdf`, `../x`), custody.CodeInvalidRequest, []string{"/filename"}},
		"backslash":           {edit(`pump.pdf`, `a\\b`), custody.CodeInvalidRequest, []string{"/filename"}},
		"control character":   {edit(`pump.pdf`, `a\u0000b`), custody.CodeInvalidRequest, []string{"/filename"}},
		"filename casing":     {edit(`"filename"`, `"Filename"`), custody.CodeInvalidRequest, []string{"/filename"}},
		"content type":        {edit(`application/pdf`, `pdf`), custody.CodeInvalidRequest, []string{"/content_type"}},
		"content type params": {edit(`application/pdf`, `text/plain; =`), custody.CodeInvalidRequest, []string{"/content_type"}},
		"size zero":           {edit(`:100`, `:0`), custody.CodeInvalidRequest, []string{"/size_bytes"}},
		"size over":           {edit(`:100`, `:8589934593`), custody.CodeInvalidRequest, []string{"/size_bytes"}},
		"size text":           {edit(`:100`, `:"100"`), custody.CodeInvalidRequest, []string{"/size_bytes"}},
		"size fraction":       {edit(`:100`, `:1.5`), custody.CodeInvalidRequest, []string{"/size_bytes"}},
		"importance":          {edit(`:100`, `:100,"importance":"high"`), custody.CodeInvalidRequest, []string{"/importance"}},
		"notes":               {edit(`:100`, `:100,"notes":"`+strings.Repeat("n", 2001)+`"`), custody.CodeInvalidRequest, []string{"/notes"}},
		"two fields":          {edit(`:100`, `:0,"notes":1`), custody.CodeInvalidRequest, []string{"/notes", "/size_bytes"}},
		"not an object":       {`[]`, custody.CodeInvalidRequest, []string{""}},
		"null":                {`null`, custody.CodeInvalidRequest, []string{""}},
		"malformed":           {`{"filename":`, custody.CodeInvalidRequest, []string{""}},
		"trailing":            {initiateJSON + `{}`, custody.CodeInvalidRequest, []string{""}},
		"empty":               {``, custody.CodeInvalidRequest, []string{""}},
		"duplicate":           {edit(`:100`, `:100,"size_bytes":100`), custody.CodeInvalidRequest, []string{""}},
		"duplicate in depth":  {edit(`"accepted":true`, `"accepted":false,"accepted":true`), custody.CodeInvalidRequest, []string{""}},
		"invalid UTF-8":       {edit(`pump`, "\xff"), custody.CodeInvalidRequest, []string{""}},
		"no consent":          {edit(`,"consent":`+consentJSON, ``), custody.CodeConsentInvalid, []string{"/consent"}},
		"consent null":        {edit(consentJSON, `null`), custody.CodeConsentInvalid, []string{"/consent"}},
		"not accepted":        {edit(`"accepted":true`, `"accepted":false`), custody.CodeConsentInvalid, []string{"/consent/accepted"}},
		"accepted as text":    {edit(`"accepted":true`, `"accepted":"true"`), custody.CodeConsentInvalid, []string{"/consent/accepted"}},
		"uppercase hash":      {edit(`aaaa`, `AAAA`), custody.CodeConsentInvalid, []string{"/consent/text_hash_sha256"}},
		"named e-mail":        {edit(`ada@example.org`, `Ada <ada@example.org>`), custody.CodeConsentInvalid, []string{"/consent/consenting_user_email"}},
		"no at":               {edit(`ada@example.org`, `ada`), custody.CodeConsentInvalid, []string{"/consent/consenting_user_email"}},
		"two addresses":       {edit(`ada@example.org`, `a@b.org,c@d.org`), custody.CodeConsentInvalid, []string{"/consent/consenting_user_email"}},
		"date alone":          {edit(`2026-11-20T10:30:00.1234+01:00`, `2026-11-20`), custody.CodeConsentInvalid, []string{"/consent/accepted_at"}},
		"lax hour":            {edit(`T10:30:00.1234`, `T1:30:00`), custody.CodeConsentInvalid, []string{"/consent/accepted_at"}},
		"day of no month":     {edit(`2026-11-20`, `2026-02-30`), custody.CodeConsentInvalid, []string{"/consent/accepted_at"}},
		"offset":              {edit(`+01:00`, `+24:30`), custody.CodeConsentInvalid, []string{"/consent/accepted_at"}},
		"zero time":           {edit(`2026-11-20T10:30:00.1234`, `0001-01-01T00:00:00`), custody.CodeConsentInvalid, []string{"/consent/accepted_at"}},
		"year 10000 in UTC":   {edit(`2026-11-20T10:30:00.1234+01:00`, `9999-12-31T23:59:59-00:01`), custody.CodeConsentInvalid, []string{"/consent/accepted_at"}},
		"consent and more": {strings.Replace(edit(`:100`, `:0`), `"accepted":true`, `"accepted":false`, 1), custody.CodeConsentInvalid,
			[]string{"/consent/accepted", "/size_bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			b.t, b.got = t, nil
			r := b.post(partners+"/initiate", c.body, asUp)
			r.wants(t, 400, c.code, c.paths...)
			if len(r.body.Details.Fields) == 0 {
				t.Errorf("no field is named: %s", r.raw)
			}
			if b.got != nil {
				t.Error("it reached the room")
			}
		})
	}
}

func TestErrorsNeverEchoInput(t *testing.T) {
	b := newBench(t)
	const mine = "hunter2secret"
	initiate := func(old, new string) reply {
		return b.post(partners+"/initiate", strings.Replace(initiateJSON, old, new, 1), asUp)
	}
	complete := func(old, new string) reply {
		return b.post(partners+"/complete", strings.Replace(completeJSON, old, new, 1), asUp)
	}
	for name, r := range map[string]reply{
		"unknown property": complete(`{`, `{"`+mine+`":1,`),
		"dotted property":  complete(`{`, `{"a.`+mine+`.upload":1,"upload":2,`),
		"property of part": complete(`{"part_number":2}`, `{"part_number":2,"`+mine+`":1}`),
		"e-mail":           initiate(`ada@example.org`, mine),
		"content type":     initiate(`application/pdf`, mine),
		"enum":             initiate(`:100`, `:100,"importance":"`+mine+`"`),
		"malformed":        b.post(partners+"/initiate", `{"`+mine+`"`, asUp),
		"duplicate":        b.post(partners+"/initiate", `{"`+mine+`":1,"`+mine+`":1}`, asUp),
		"query":            b.call("GET", base+"/request-records?limit="+mine, nil, asAI),
		"cursor":           b.call("GET", base+"/request-records?cursor="+mine, nil, asAI),
		"repeated":         b.call("GET", base+"/request-records?"+mine+"=1&"+mine+"=2", nil, asAI),
		"path":             b.call("GET", "/"+mine, nil),
		"credential":       b.call("GET", base+"/quota", nil, "X-Api-Key: "+mine),
		"media type":       b.call("POST", partners+"/initiate", strings.NewReader("x"), asUp, key, "Content-Type: text/"+mine),
		"key not ASCII":    b.call("POST", partners+"/initiate", strings.NewReader(initiateJSON), asUp, asJ, "Idempotency-Key: "+mine+"é"),
		"content digest":   b.call("PUT", oneUpload+"/parts/1", strings.NewReader("x"), asUp, key, asB, "Content-Digest: sha-256=:"+mine+":"),
		"number in a path": b.call("PUT", oneUpload+"/parts/"+mine, strings.NewReader("x"), asUp, key, asB),
	} {
		if r.StatusCode < 400 {
			t.Errorf("%s: answered %d", name, r.StatusCode)
		}
		if strings.Contains(string(r.raw), mine) {
			t.Errorf("%s: the answer echoes the input: %s", name, r.raw)
		}
	}
	if strings.Contains(b.log.String(), mine) {
		t.Errorf("the log holds input:\n%s", b.log)
	}
}
