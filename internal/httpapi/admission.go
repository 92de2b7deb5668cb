package httpapi

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/accession/accession/internal/custody"
)

// admit lets a request through to validation. Who asks comes before what is asked: a stranger learns nothing of the form,
// and no body of a stranger is read.
func (d *door) admit(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		d.reached(exchangeOf(r.Context()), op.name)
		op.announced.announce(w.Header())
		if err := d.check(op, w, r); err != nil {
			d.fail(w, r, err)
			return
		}
		if !op.keepsTurn() {
			exchangeOf(r.Context()).giveTurn()
		}
		next(ctx)
	}
}

func (d *door) check(op operation, w http.ResponseWriter, r *http.Request) error {
	x := exchangeOf(r.Context())
	x.orgID = r.PathValue("org_id")
	if op.sandboxed {
		if err := d.authenticateSandbox(x, r); err != nil {
			return err
		}
	} else if !op.public {
		authenticate := d.authenticate
		if len(r.Header.Values(seatHeader)) > 0 {
			authenticate = d.authenticateSeat
		}
		if err := authenticate(x, r); err != nil {
			return err
		}
		if x.caller.TokenID != "" && !slices.Contains(x.caller.Audience, d.cfg.BaseURL) { // RFC 9068, section 4
			return custody.Errorf(custody.CodeCredentialInvalid, "the access token is for another resource; ask the token endpoint for one with resource=%s, or with none", d.cfg.BaseURL)
		}
	}
	if err := d.allowCaller(w, r, x, op); err != nil {
		return err
	}
	if !op.public && !op.sandboxed {
		// The rooms ask the same; here it comes before the body is read.
		if err := custody.Authorize(op.id, x.caller, x.orgID); err != nil {
			return err
		}
	}
	if op.ownPages {
		if err := d.checkOwnPages(r); err != nil {
			return err
		}
		x.cookie = d.cookieOf(r)
	}
	if err := checkTarget(r); err != nil {
		return err
	}
	switch keys := r.Header.Values("Idempotency-Key"); {
	case len(keys) > 1:
		return invalid(field{keyPath, "is sent more than once"})
	case len(keys) == 1 && keys[0] == "": // where it is optional, huma would take it as not sent
		return invalid(field{keyPath, "is empty"})
	}
	switch op.body {
	case bodyJSON:
		return checkJSON(r, op.maxJSON())
	case bodyPart:
		return d.checkPart(x, r)
	}
	return nil
}

// authenticate finds out who asks. A request without a credential stays a stranger; authorization answers it.
// (Section 5; contract decisions, "Authentication per operation".)
func (d *door) authenticate(x *exchange, r *http.Request) error {
	token, key, err := credentialOf(r.Header)
	if err != nil || token == "" {
		return err
	}
	c, err := d.tenants.Authenticate(r.Context(), token)
	if err != nil {
		return err
	}
	if (c.Admin || c.TokenID != "") && key {
		return custody.Errorf(custody.CodeCredentialInvalid, "this credential is accepted as Authorization: Bearer only")
	}
	c.RequestID, c.TraceID = x.requestID, x.traceID
	x.caller = c
	return nil
}

// credentialOf takes the credential out of the headers; key tells that it came in x-api-key. The same one in both is fine.
func credentialOf(h http.Header) (token string, key bool, err error) {
	keys, auths := h.Values("X-Api-Key"), h.Values("Authorization")
	if len(keys) > 1 || len(auths) > 1 {
		return "", false, ambiguousCredential()
	}
	if len(auths) == 1 {
		scheme, rest, _ := strings.Cut(auths[0], " ")
		if token = strings.TrimSpace(rest); !strings.EqualFold(scheme, "Bearer") || token == "" {
			return "", false, malformedCredential()
		}
	}
	if len(keys) == 1 {
		if token != "" && token != keys[0] {
			return "", false, ambiguousCredential()
		}
		if token, key = keys[0], true; token == "" {
			return "", false, malformedCredential()
		}
	}
	if len(token) > maxTokenBytes || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", false, malformedCredential()
	}
	return token, key, nil
}

func ambiguousCredential() error {
	return custody.Errorf(custody.CodeInvalidRequest, "the request carries more than one credential; send one, in x-api-key or as Authorization: Bearer")
}

func malformedCredential() error {
	return custody.Errorf(custody.CodeCredentialInvalid, "the credential is malformed; send it in x-api-key or as Authorization: Bearer")
}

// checkTarget refuses what two readers could read differently: repeated parameters, broken escapes, invalid UTF-8.
func checkTarget(r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalid(field{"/query", "is not a well-formed query"})
	}
	for name, values := range q {
		if !utf8.ValidString(name) || !utf8.ValidString(strings.Join(values, "")) {
			return invalid(field{"/query", "is not UTF-8"})
		}
		if len(values) > 1 {
			return invalid(field{"/query", "holds a parameter more than once"})
		}
	}
	if !utf8.ValidString(r.URL.Path) {
		return invalid(field{"/path", "is not UTF-8"})
	}
	return nil
}

// checkJSON checks media type and announced length; huma reads and bounds the bytes. An empty body has no media type.
func checkJSON(r *http.Request, limit int64) error {
	if r.ContentLength == 0 {
		r.Header.Set("Content-Type", "application/json")
		return nil
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || mediaType != "application/json" || (charset != "" && charset != "utf-8") || encoded(r) {
		return unsupported("application/json")
	}
	if r.ContentLength > limit {
		return bodyTooLarge(limit)
	}
	r.Header.Set("Content-Type", mediaType) // huma compares it by case
	return nil
}

// checkPart checks what is known of a part before its first byte, and prepares the reading. (Section 4.6, part.)
func (d *door) checkPart(x *exchange, r *http.Request) error {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/octet-stream" || encoded(r) {
		return unsupported("application/octet-stream")
	}
	if r.ContentLength < 0 || (r.ContentLength == 0 && r.Header.Get("Content-Length") == "") {
		return custody.Errorf(custody.CodeLengthRequired, "a part needs a Content-Length; chunked parts are not accepted")
	}
	if limit := 2 * d.cfg.MaxPartBytes; r.ContentLength > limit { // nearer misses are part_length_invalid, by the upload's own part size
		return bodyTooLarge(limit)
	}
	if x.digest, err = contentDigest(r.Header.Values("Content-Digest")); err != nil {
		return err
	}
	x.body = &partBody{body: r.Body, control: x.control, idle: d.cfg.PartIdleTimeout, left: r.ContentLength}
	return nil
}

func encoded(r *http.Request) bool {
	e := r.Header.Get("Content-Encoding")
	return e != "" && !strings.EqualFold(e, "identity")
}

func unsupported(accepted string) error {
	return custody.Errorf(custody.CodeMediaTypeUnsupported, "send the body as %s, without Content-Encoding", accepted).With("accepted", accepted)
}
