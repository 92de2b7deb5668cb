package httpapi

import (
	"maps"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

func TestAttachReview(t *testing.T) {
	b := newBench(t)
	path := customers + "/up_1/external-review"
	whole := `{"review_id":"rev-7","source_url":"https://reviews.example:8443/7?a=%20#p","reviewer":"Ünal & Co","notes":"line\nline"}`
	data := b.post(path, whole, asUp).succeeds(t, 200)
	if want := (map[string]any{"upload_id": "up_1", "review_id": "rev-7", "evaluation_status": "not_evaluated"}); !maps.Equal(data, want) {
		t.Errorf("data %v, want %v", data, want)
	}
	got := b.got.(custody.Review)
	if body, _ := got.Body.(map[string]any); len(body) != 4 {
		t.Errorf("the room got the body %v", got.Body)
	}
	got.Body = nil
	if want := (custody.Review{OrgID: "org_1", UploadID: "up_1", ReviewID: "rev-7", SourceURL: "https://reviews.example:8443/7?a=%20#p",
		Reviewer: "Ünal & Co", Notes: "line\nline"}); got != want {
		t.Errorf("the room got %+v", got)
	}
	first := b.key.RequestHash
	b.post(path, strings.Replace(whole, "rev-7", "rev-8", 1), asUp).succeeds(t, 200)
	if b.key.RequestHash == first || b.key.Operation != custody.OpExternalReview {
		t.Errorf("idempotency %+v", b.key)
	}
	b.post(path, `{"review_id":"r"}`, asUp).succeeds(t, 200)

	url := func(u string) string { return `{"review_id":"r","source_url":"` + u + `"}` }
	for name, c := range map[string]struct {
		body string
		path string
	}{
		"no review_id": {`{"reviewer":"x"}`, "/review_id"}, "empty review_id": {`{"review_id":""}`, "/review_id"},
		"review_id a number": {`{"review_id":7}`, "/review_id"}, "empty reviewer": {`{"review_id":"r","reviewer":""}`, "/reviewer"},
		"control character": {`{"review_id":"r","reviewer":"a\u0007"}`, "/reviewer"},
		"long notes":        {`{"review_id":"r","notes":"` + strings.Repeat("n", 2001) + `"}`, "/notes"},
		"another property":  {`{"review_id":"r","score":5}`, ""},
		"no scheme":         {url("reviews.example/7"), "/source_url"}, "relative": {url("/reviews/7"), "/source_url"}, "empty": {url(""), "/source_url"},
		"ftp": {url("ftp://reviews.example/7"), "/source_url"}, "javascript": {url("javascript:alert(1)"), "/source_url"},
		"file": {url("file:///etc/passwd"), "/source_url"}, "no host": {url("https:///7"), "/source_url"}, "port alone": {url("https://:80/7"), "/source_url"},
		"user": {url("https://a:b@reviews.example/7"), "/source_url"}, "space": {url("https://reviews.example/a b"), "/source_url"},
		"not ASCII": {url("https://rev\u00eews.example/"), "/source_url"}, "half an escape": {url("https://reviews.example/%4"), "/source_url"},
		"port": {url("https://reviews.example:70000/"), "/source_url"}, "no port": {url("https://reviews.example:/"), "/source_url"},
		"long": {url("https://reviews.example/" + strings.Repeat("a", 2048)), "/source_url"}, "a number": {`{"review_id":"r","source_url":1}`, "/source_url"},
		"line end": {url(`https://reviews.example/\u000a`), "/source_url"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t, b.got = t, nil
			r := b.post(path, c.body, asUp)
			r.wants(t, 400, custody.CodeInvalidRequest, c.path)
			if b.got != nil || strings.Contains(string(r.raw), "reviews.example") {
				t.Errorf("it reached the room, or the answer echoes it: %s", r.raw)
			}
		})
	}
}

// The body of a review is closed, but a property that claims a verdict is called by its name.
func TestClaimInClosedBodyIsAClaim(t *testing.T) {
	b := newBench(t)
	path := customers + "/up_1/external-review"
	for body, at := range map[string]string{
		`{"review_id":"r","verified":true}`:                                     "/verified",
		`{"verified":true,"score":5}`:                                           "/verified",
		`{"review_id":"r","details":{"deep":[{"certified":"yes"}]}}`:            "",
		`{"review_id":"r","hunter2secret_verified":true}`:                       "",
		`{"review_id":"r","evaluation_status":"passed"}`:                        "/evaluation_status",
		`{"review_id":"r","source_url":{"ranking":1}}`:                          "/source_url/ranking",
		`{"review_id":"r","notes":"This upload was verified by this service."}`: "reaches the room",
	} {
		b.got = nil
		r := b.post(path, body, asUp)
		if at == "reaches the room" {
			r.succeeds(t, 200)
			continue
		}
		r.wants(t, 400, custody.CodeVerificationClaim, at)
		if b.got != nil || strings.Contains(string(r.raw), "hunter2secret") {
			t.Errorf("%s: it reached the room, or the answer echoes it: %s", body, r.raw)
		}
	}
	b.post(path, `{"review_id":"r","verified":false}`, asUp).wants(t, 400, custody.CodeInvalidRequest, "")
	b.post(path, `{"review_id":"r","evaluation_status":"not_evaluated"}`, asUp).wants(t, 400, custody.CodeInvalidRequest, "")
}
