package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

const (
	formType     = "application/x-www-form-urlencoded"
	maxFormBytes = 16 << 10 // bytes of an OAuth request's form, inclusive
)

// form is the parameters of an OAuth request; none repeats but resource. (RFC 6749, section 3.2; RFC 8707, section 2.)
type form map[string][]string

// value is one parameter; one that is empty counts as not sent. (RFC 6749, section 3.2.)
func (f form) value(name string) string {
	if len(f[name]) == 0 {
		return ""
	}
	return f[name][0]
}

func (f form) token() (string, error) {
	token := f.value("token")
	if token == "" {
		return "", badForm("token is missing")
	}
	return token, nil
}

// readForm reads the body; a credential in the address would end up in logs, so no query is taken.
func (d *door) readForm(x *exchange, r *http.Request) (form, error) {
	if r.URL.RawQuery != "" {
		return nil, badForm("send the parameters in the body, none in the address")
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || mediaType != formType || (charset != "" && charset != "utf-8") || encoded(r) {
		return nil, badForm("send the body as " + formType)
	}
	if r.ContentLength > maxFormBytes {
		return nil, bodyTooLarge(maxFormBytes)
	}
	_ = x.control.SetReadDeadline(time.Now().Add(d.cfg.BodyTimeout))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxFormBytes+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, custody.Errorf(custody.CodeRequestTimeout, "the body did not arrive in time").Because(err)
	case err != nil:
		return nil, badForm("the body could not be read to its end")
	case len(body) > maxFormBytes:
		return nil, bodyTooLarge(maxFormBytes)
	}
	_ = x.control.SetReadDeadline(time.Time{})
	sent, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, badForm("the body is no well-formed form")
	}
	f := form{}
	for name, values := range sent {
		for _, v := range values {
			if !utf8.ValidString(name) || !utf8.ValidString(v) {
				return nil, badForm("the form is not UTF-8")
			}
			if v != "" {
				f[name] = append(f[name], v)
			}
		}
		if len(values) > 1 && name != "resource" {
			return nil, badForm("a parameter is sent more than once")
		}
	}
	return f, nil
}

// clientOf takes the client's id and secret, by HTTP Basic or from the form. (RFC 6749, section 2.3.1.)
func clientOf(r *http.Request, f form) (id, secret string, err error) {
	auths := r.Header.Values("Authorization")
	if len(auths) > 1 {
		return "", "", badForm("the client authenticates more than once")
	}
	id, secret = f.value("client_id"), f.value("client_secret")
	if len(auths) == 0 {
		if id == "" || secret == "" {
			return "", "", badClient()
		}
		return id, secret, nil
	}
	name, password, ok := r.BasicAuth()
	if !ok {
		return "", "", badClient()
	}
	user, userErr := url.QueryUnescape(name) // clients form-encode both halves, or ought to
	word, wordErr := url.QueryUnescape(password)
	switch {
	case userErr != nil || wordErr != nil || user == "" || word == "":
		return "", "", badClient()
	case secret != "" || id != "" && id != user:
		return "", "", badForm("the client authenticates more than once")
	}
	return user, word, nil
}

func badForm(description string) error {
	return &tenant.OAuthError{Code: tenant.InvalidRequest, Description: description}
}

func badClient() error {
	return &tenant.OAuthError{Code: tenant.InvalidClient, Description: "authenticate with client_id and client_secret, by HTTP Basic or in the form"}
}

func scopeText(scopes []custody.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}
