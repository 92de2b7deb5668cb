package httpapi

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	customers  = base + "/customer-uploads"
	submitJSON = `{"filename":"note.txt","payload":"The pump runs.","visibility":"ai_readable_controlled","consent":` + consentJSON + `}`
)

func (r *rooms) Submit(ctx context.Context, c custody.Caller, v custody.Submission, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, r.submitted(v))
}

func (r *rooms) Correct(ctx context.Context, c custody.Caller, v custody.Submission, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, r.submitted(v))
}

func (r *rooms) AttachReview(ctx context.Context, c custody.Caller, v custody.Review, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, v)
}

func (r *rooms) submitted(v custody.Submission) custody.Upload {
	return custody.Upload{ID: "up_2", OrgID: v.OrgID, OriginalUploadID: v.OriginalUploadID, Status: custody.StatusReady, Filename: v.Filename,
		Consent: v.Consent, Sequence: 9, PipelineID: "pl_2"}
}

// edited is submitJSON with one thing changed.
func edited(old, new string) string { return strings.Replace(submitJSON, old, new, 1) }

// with is submitJSON with more properties.
func with(properties string) string { return edited(`{`, `{`+properties+`,`) }

func TestSubmit(t *testing.T) {
	b := newBench(t)
	const whole = `{"filename":"Prüfung größer.txt","payload":"a\u0000b \ud83d\ude00\n","visibility":"private_summary_public","content_type":"Text/Markdown; charset=UTF-8",
		"uploader_organization_type":"solution_company","uploader_organization_id":"org_2","asserted_subject_org_id":"org_1","customer_workspace_access":"granted",
		"more":{"b":[1,true,null]},"consent":` + consentJSON + `}`
	capture := map[string]any{"status": "captured", "beta_agreement_version": "b1", "ai_readable_use_consent_version": "c1",
		"text_hash_sha256": strings.Repeat("a", 64), "accepted_at": "2026-11-20T09:30:00.123Z"}
	want := map[string]any{"upload_id": "up_2", "org_id": "org_1", "status": "READY", "evaluation_status": "not_evaluated",
		"filename": "Prüfung größer.txt", "sequence": 9.0, "pipeline_id": "pl_2"}
	for path, op := range map[string]custody.Operation{customers: custody.OpCustomerUpload, customers + "/up_1/corrections": custody.OpCorrection} {
		r := b.post(path, whole, asUp)
		data := r.succeeds(t, 201)
		original := ""
		if op == custody.OpCorrection {
			original = "up_1"
			if data["original_upload_id"] != "up_1" {
				t.Errorf("data %v", data)
			}
			delete(data, "original_upload_id")
		}
		if got, _ := data["consent_capture"].(map[string]any); !maps.Equal(got, capture) {
			t.Errorf("consent_capture %v, want %v", got, capture)
		}
		delete(data, "consent_capture")
		if !maps.Equal(data, want) {
			t.Errorf("%s: data %v, want %v", op, data, want)
		}
		got := b.got.(custody.Submission)
		body, _ := got.Body.(map[string]any)
		if more, _ := body["more"].(map[string]any); len(more) != 1 || body["payload"] != got.Payload {
			t.Errorf("the room got the body %v", got.Body)
		}
		got.Body = nil
		if want := (custody.Submission{
			OrgID: "org_1", OriginalUploadID: original, Filename: "Prüfung größer.txt", ContentType: "Text/Markdown; charset=UTF-8", Payload: "a\x00b 😀\n",
			Visibility: custody.VisibilityPrivateSummary, UploaderType: "solution_company", UploaderOrgID: "org_2", AssertedSubjectOrgID: "org_1", WorkspaceAccess: "granted",
			Consent: custody.Consent{AgreementVersion: "b1", AIReadableVersion: "c1", TextHashSHA256: strings.Repeat("a", 64), ConsentingUserID: "u1",
				ConsentingEmail: "ada@example.org", AcceptedAt: time.Date(2026, 11, 20, 9, 30, 0, 123e6, time.UTC)},
		}); got != want {
			t.Errorf("the room got %+v\nwant %+v", got, want)
		}
		if b.key.Key != "key-12345" || b.key.Operation != op || b.key.CredentialID != "cred_u" {
			t.Errorf("idempotency %+v", b.key)
		}
		if said := string(r.raw) + b.log.String(); strings.Contains(said, "ada@example.org") || strings.Contains(said, `"u1"`) || strings.Contains(said, "😀") {
			t.Errorf("the answer or the log tells who consented, or what: %s", said)
		}
	}
}

func TestRequestHashOfSubmissions(t *testing.T) {
	b := newBench(t)
	hash := func(path, body string) string {
		b.post(path, body, asUp).succeeds(t, 201)
		return b.key.RequestHash
	}
	first := hash(customers, submitJSON)
	if first == hash(customers+"/up_1/corrections", submitJSON) || hash(customers+"/up_2/corrections", submitJSON) == hash(customers+"/up_1/corrections", submitJSON) {
		t.Error("corrections of different uploads have one hash")
	}
	if hash(customers, " "+with(`"content_type":"text/plain","uploader_organization_type":"customer","customer_workspace_access":null,"more":1`)) != first {
		t.Error("white space, defaults and ignored properties change the hash")
	}
	for _, other := range []string{
		edited("runs", "rans"), edited("note.txt", "nose.txt"), edited("u1", "u2"), edited("ai_readable_controlled", "internal_only"),
		with(`"customer_workspace_access":"granted"`), with(`"asserted_subject_org_id":"org_1"`),
	} {
		if hash(customers, other) == first {
			t.Errorf("the same hash for %s", other)
		}
	}
}

func TestSubmissionsRefuseFields(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("x", custody.MaxPayloadBytes)
	bad := func(path string) []string { return []string{path} }
	for name, c := range map[string]struct {
		body  string
		code  custody.Code
		paths []string
	}{
		"no filename":            {edited(`"filename":"note.txt",`, ``), custody.CodeInvalidRequest, bad("/filename")},
		"long filename":          {edited(`note.txt`, strings.Repeat("ä", 128)), custody.CodeInvalidRequest, bad("/filename")},
		"path as filename":       {edited(`note.txt`, `../x`), custody.CodeInvalidRequest, bad("/filename")},
		"no payload":             {edited(`"payload":"The pump runs.",`, ``), custody.CodeInvalidRequest, bad("/payload")},
		"empty payload":          {edited(`The pump runs.`, ``), custody.CodeInvalidRequest, bad("/payload")},
		"payload over":           {edited(`The pump runs.`, long+"x"), custody.CodeInvalidRequest, bad("/payload")},
		"payload over in UTF-8":  {edited(`The pump runs.`, strings.Repeat("ä", custody.MaxPayloadBytes/2)+"x"), custody.CodeInvalidRequest, bad("/payload")},
		"payload null":           {edited(`"The pump runs."`, `null`), custody.CodeInvalidRequest, bad("/payload")},
		"payload an object":      {edited(`"The pump runs."`, `{}`), custody.CodeInvalidRequest, bad("/payload")},
		"half a surrogate":       {edited(`The pump`, `\ud800`), custody.CodeInvalidRequest, bad("")},
		"invalid UTF-8":          {edited(`The pump`, "\xff"), custody.CodeInvalidRequest, bad("")},
		"no visibility":          {edited(`"visibility":"ai_readable_controlled",`, ``), custody.CodeInvalidRequest, bad("/visibility")},
		"visibility":             {edited(`ai_readable_controlled`, `public`), custody.CodeInvalidRequest, bad("/visibility")},
		"visibility casing":      {edited(`ai_readable_controlled`, `Internal_Only`), custody.CodeInvalidRequest, bad("/visibility")},
		"PDF":                    {with(`"content_type":"application/pdf"`), custody.CodeInvalidRequest, bad("/content_type")},
		"JSON":                   {with(`"content_type":"application/json"`), custody.CodeInvalidRequest, bad("/content_type")},
		"no subtype":             {with(`"content_type":"text/"`), custody.CodeInvalidRequest, bad("/content_type")},
		"empty type":             {with(`"content_type":""`), custody.CodeInvalidRequest, bad("/content_type")},
		"broken parameter":       {with(`"content_type":"text/plain; ="`), custody.CodeInvalidRequest, bad("/content_type")},
		"another charset":        {with(`"content_type":"text/plain; charset=utf-16"`), custody.CodeInvalidRequest, bad("/content_type")},
		"uploader type":          {with(`"uploader_organization_type":"partner"`), custody.CodeInvalidRequest, bad("/uploader_organization_type")},
		"uploader id":            {with(`"uploader_organization_id":""`), custody.CodeInvalidRequest, bad("/uploader_organization_id")},
		"subject id":             {with(`"asserted_subject_org_id":7`), custody.CodeInvalidRequest, bad("/asserted_subject_org_id")},
		"workspace access":       {with(`"customer_workspace_access":true`), custody.CodeInvalidRequest, bad("/customer_workspace_access")},
		"duplicate":              {with(`"payload":"x"`), custody.CodeInvalidRequest, bad("")},
		"not an object":          {`["x"]`, custody.CodeInvalidRequest, bad("")},
		"nothing":                {``, custody.CodeInvalidRequest, nil},
		"no consent":             {edited(`,"consent":`+consentJSON, ``), custody.CodeConsentInvalid, bad("/consent")},
		"consent not accepted":   {edited(`"accepted":true`, `"accepted":false`), custody.CodeConsentInvalid, bad("/consent/accepted")},
		"consent without e-mail": {edited(`,"consenting_user_email":"ada@example.org"`, ``), custody.CodeConsentInvalid, bad("/consent/consenting_user_email")},
	} {
		for path := range map[string]bool{customers: true, customers + "/up_1/corrections": true} {
			t.Run(name, func(t *testing.T) {
				b.t, b.got = t, nil
				b.post(path, c.body, asUp).wants(t, 400, c.code, c.paths...)
				if b.got != nil {
					t.Error("it reached the room")
				}
			})
		}
	}
	b.t = t
	b.post(customers, edited(`The pump runs.`, long), asUp).succeeds(t, 201)
	b.post(customers, edited(`The pump runs.`, strings.Repeat("ä", custody.MaxPayloadBytes/2)), asUp).succeeds(t, 201)
	for _, mediaType := range []string{"text/plain", "text/csv", "text/html; charset=us-ascii", "TEXT/PLAIN;charset=UTF-8"} {
		b.post(customers, with(`"content_type":"`+mediaType+`"`), asUp).succeeds(t, 201)
	}
	b.post(customers, with(`"more":"`+strings.Repeat("x", maxJSONBytes)+`"`), asUp).wants(t, 413, custody.CodeBodyTooLarge)
	b.call("POST", customers, strings.NewReader(submitJSON), asUp, key, "Content-Type: text/plain").wants(t, 415, custody.CodeMediaTypeUnsupported)
	b.call("POST", customers, strings.NewReader(submitJSON), asUp, asJ).wants(t, 400, custody.CodeIdempotencyKeyInvalid, keyPath)
	for _, short := range []string{"1234567", strings.Repeat("k", 129)} {
		b.call("POST", customers, strings.NewReader(submitJSON), asUp, asJ, "Idempotency-Key: "+short).wants(t, 400, custody.CodeIdempotencyKeyInvalid, keyPath)
	}
	for _, path := range []string{customers, customers + "/up_1/corrections", customers + "/up_1/external-review"} {
		b.post(path, `{}`).wants(t, 401, custody.CodeAuthenticationRequired)
		b.post(path, `{}`, asAI).wants(t, 403, custody.CodeInsufficientScope)
		b.post(strings.Replace(path, "org_1", "org_2", 1), `{}`, asUp).wants(t, 403, custody.CodeAccessDenied)
		b.call("GET", path, nil, asUp).wants(t, 405, custody.CodeMethodNotAllowed)
	}
}

func TestSubmissionsArePublished(t *testing.T) {
	raw := string(newBench(t).call("GET", "/api/v1/ai/openapi.json", nil).raw)
	for _, want := range []string{`"operationId":"createCustomerUpload"`, `"operationId":"createCorrection"`, `"operationId":"attachExternalReview"`,
		`"maxLength":1048576`, `"private_summary_public"`, `"format":"uri"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("the document lacks %s", want)
		}
	}
	if strings.Contains(raw, `"raw"`) {
		t.Error("the document tells of what stays inside")
	}
}
