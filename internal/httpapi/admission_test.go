package httpapi

import (
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

func TestCredentials(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		headers []string
		status  int
		code    custody.Code
	}{
		"none":                   {nil, 401, custody.CodeAuthenticationRequired},
		"unknown":                {[]string{"X-Api-Key: acc_x"}, 401, custody.CodeCredentialInvalid},
		"basic":                  {[]string{"Authorization: Basic " + uploaderToken}, 401, custody.CodeCredentialInvalid},
		"empty bearer":           {[]string{"Authorization: Bearer "}, 401, custody.CodeCredentialInvalid},
		"empty key":              {[]string{"X-Api-Key: "}, 401, custody.CodeCredentialInvalid},
		"not ASCII":              {[]string{"X-Api-Key: é"}, 401, custody.CodeCredentialInvalid},
		"far too long":           {[]string{"X-Api-Key: " + strings.Repeat("a", 5000)}, 401, custody.CodeCredentialInvalid},
		"two different":          {[]string{asUp, "Authorization: Bearer " + readerToken}, 400, custody.CodeInvalidRequest},
		"two keys":               {[]string{asUp, asUp}, 400, custody.CodeInvalidRequest},
		"two bearers":            {[]string{"Authorization: Bearer " + uploaderToken, "Authorization: Bearer " + uploaderToken}, 400, custody.CodeInvalidRequest},
		"admin token as api key": {[]string{"X-Api-Key: " + adminToken}, 401, custody.CodeCredentialInvalid},
		"admin token in both":    {[]string{"X-Api-Key: " + adminToken, admin}, 401, custody.CodeCredentialInvalid},
		"wrong role":             {[]string{asAI}, 401, custody.CodeCredentialNotBound},
		"same in both":           {[]string{asUp, "Authorization: Bearer " + uploaderToken}, 200, ""},
		"key":                    {[]string{asUp}, 200, ""},
		"bearer":                 {[]string{"Authorization: Bearer " + uploaderToken}, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			r := b.post(partners+"/initiate", initiateJSON, c.headers...)
			if c.status == 200 {
				r.succeeds(t, 200)
				return
			}
			r.wants(t, c.status, c.code)
			if c.status == 401 && !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("WWW-Authenticate %q", r.Header.Get("WWW-Authenticate"))
			}
		})
	}
	b.t = t
	b.post(oneUpload+"/withdraw", `{}`, "X-Api-Key: "+adminToken).wants(t, 401, custody.CodeCredentialInvalid)
	b.post("/admin/tenant-keys/issue", `{"org_id":"o","role":"ai_reader"}`, "X-Api-Key: "+adminToken).wants(t, 401, custody.CodeCredentialInvalid)
}

func TestStrangersComeBeforeForm(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		method, path string
		status       int
		code         custody.Code
		as           string
	}{
		{"POST", partners + "/initiate", 401, custody.CodeAuthenticationRequired, "X-None: 1"},
		{"POST", "/api/v1/organizations/org_2/partner-uploads/initiate", 401, custody.CodeCredentialNotBound, asUp},
		{"PUT", oneUpload + "/parts/x", 401, custody.CodeAuthenticationRequired, "X-None: 1"},
		{"POST", oneUpload + "/complete", 401, custody.CodeCredentialNotBound, asAI},
		{"GET", "/api/v1/organizations/org_2/partner-uploads/up_1?include_gates=x", 404, custody.CodeUploadNotFound, asUp},
		{"POST", oneUpload + "/withdraw", 403, custody.CodeAccessDenied, asAI},
		{"GET", "/api/v1/organizations/org_2/quota", 403, custody.CodeAccessDenied, asUp},
		{"GET", base + "/ai-context/up_1", 403, custody.CodeAccessDenied, asUp},
		{"GET", base + "/request-records?limit=x", 403, custody.CodeAccessDenied, asUp},
		{"POST", "/admin/tenant-keys/issue", 401, custody.CodeCredentialInvalid, asUp},
		{"POST", "/admin/tenant-keys/issue", 401, custody.CodeAuthenticationRequired, "X-None: 1"},
	} {
		b.call(c.method, c.path, strings.NewReader("no JSON"), c.as).wants(t, c.status, c.code)
	}
	if b.got != nil {
		t.Errorf("it reached a room: %v", b.got)
	}
}

// A stranger is told of a credential that the operation takes.
func TestWhatAStrangerIsToldToSend(t *testing.T) {
	b := newBench(t)
	for path, said := range map[string]string{
		"GET /oauth/identity":           "needs an OAuth access token as Authorization: Bearer",
		"POST /admin/tenant-keys/issue": "needs the admin token as Authorization: Bearer",
		"GET " + oneUpload:              "needs a credential in the x-api-key header or as a Bearer token",
	} {
		method, path, _ := strings.Cut(path, " ")
		r := b.call(method, path, nil)
		r.wants(t, 401, custody.CodeAuthenticationRequired)
		if !strings.Contains(string(r.raw), said) {
			t.Errorf("%s: %s", path, r.raw)
		}
	}
}
