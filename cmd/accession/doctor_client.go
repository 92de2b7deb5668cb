package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

const (
	soon         = 14 * 24 * time.Hour // an end that should be prepared for
	mostTimeDiff = time.Minute
)

func newDoctorClientCommand(app *App) *cobra.Command {
	var conn connection
	var fix bool
	cmd := &cobra.Command{
		Use:   "client",
		Short: "Look at the way from this computer to a service: profiles, address, TLS, time, credentials",
		Long: `Looks at the way from this computer to a service: the file of profiles, the address, TLS, the difference of time, and
whether the credentials are accepted. With an admin token it also tells which credentials end within two weeks. --fix takes
rights on the profiles from others.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := app.examineProfiles(fix)
			if err := conn.resolve(cmd.Flags().Changed); err != nil {
				// What is wrong with the profiles is a finding; what is wrong with the command line is not.
				if len(found) == 0 || found[0].OK {
					return err
				}
				return app.diagnosis(found, false, conn.json)
			}
			found = append(found, conn.examineWay(cmd.Context())...)
			if err := cmd.Context().Err(); err != nil {
				return err // what was not answered by then is no finding
			}
			return app.diagnosis(found, fix, conn.json)
		},
	}
	conn.register(app, cmd, true, true)
	cmd.PreRunE = nil // profiles that cannot be used are what is looked for
	cmd.Flags().BoolVar(&fix, "fix", false, "take rights on the profiles from others; nothing else")
	return cmd
}

// examineProfiles looks at the file of profiles, where there is one. It is mended at once: what follows needs what it holds.
func (a *App) examineProfiles(fix bool) []finding {
	path, err := a.profilesFile()
	if err != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	f := finding{Name: "profiles", OK: true, Detail: path, Why: "whoever reads them can do what their credentials allow"}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		f.OK, f.Detail = false, fmt.Sprintf("%s: mode %04o", path, mode)
		f.Remedy, f.Command = "others can read it: take their rights, and have the credentials rotated if somebody did", "chmod 600 "+path
		if fix {
			err := os.Chmod(path, 0o600)
			if err == nil {
				_, err = a.profiles() // it may be another user's, too
			}
			if err == nil {
				f.OK, f.Fixed, f.Detail = true, true, path
			} else {
				f.Detail, f.Remedy, f.Command = err.Error(), first(nextStep(err), "look at the file"), ""
			}
		}
	} else if _, err := a.profiles(); err != nil {
		f.OK, f.Detail = false, err.Error()
		f.Remedy = first(nextStep(err), "look at the file")
	}
	return []finding{f}
}

// examineWay looks at the service, as far as it can be reached.
func (c *connection) examineWay(ctx context.Context) []finding {
	u, err := url.Parse(c.server)
	if _, wrong := client.New(c.server); wrong != nil || err != nil {
		return []finding{{Name: "address", Detail: maskURL(c.server), Remedy: "write it like https://custody.example, in --server, " + envServer + " or the profile", Why: "nothing can be reached there"}}
	}
	address := finding{Name: "address", OK: true, Detail: c.server}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		address.Remedy, address.Why = "use https", "credentials and documents travel unencrypted"
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+"/readyz", nil)
	if err != nil {
		return []finding{{Name: "address", Detail: maskURL(c.server), Remedy: "write it like https://custody.example"}}
	}
	request.Header.Set("User-Agent", "accession/"+programVersion())
	asked := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		service := finding{
			Name: "service", Detail: "no answer: " + err.Error(), Why: "no command reaches it",
			Remedy: "check that the service runs, the address, and what is between", Command: "curl -v " + c.server + "/healthz",
		}
		var certificate *tls.CertificateVerificationError
		if errors.As(err, &certificate) {
			service.Name, service.Why = "tls", "nobody could tell the service from an impostor"
			service.Remedy = "have the service give a certificate that this computer trusts, for this name; SSL_CERT_FILE names further authorities"
			service.Command = "openssl s_client -connect " + u.Host + " -servername " + u.Hostname()
		} else if speaksHTTP(err) {
			service.Remedy = nextStep(&client.NetworkError{Host: u.Host, Err: err})
		}
		return []finding{address, service}
	}
	defer answer.Body.Close()
	half := time.Since(asked) / 2
	found := []finding{address, answered(answer, c.server)}
	if state := answer.TLS; state != nil {
		found = append(found, examineCertificate(state))
	}
	if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		found = append(found, timeDifference(time.Until(at)+half))
	}
	return append(found, c.examineCredentials(ctx)...)
}

func answered(answer *http.Response, server string) finding {
	f := finding{Name: "service", OK: true, Detail: "ready", Why: "no upload is accepted or read"}
	switch {
	case answer.Header.Get("X-Request-Id") == "":
		f.OK, f.Detail = false, "answered "+answer.Status+", and is no accession service"
		f.Remedy, f.Command = "check the address", "curl -v "+server+"/healthz"
	case answer.StatusCode == http.StatusBadRequest && strings.HasPrefix(server, "http://"): // of /readyz only a service with TLS says so
		f.OK, f.Detail = false, "speaks TLS: "+answer.Status
		f.Remedy, f.Command = "write https:// in --server, "+envServer+" or the profile", "curl "+server+"/readyz"
	case answer.StatusCode != http.StatusOK:
		f.OK, f.Detail = false, "not ready: "+answer.Status+", request_id "+answer.Header.Get("X-Request-Id")
		f.Remedy, f.Command = "wait, or have the operator look: the answer says what is missing", "curl "+server+"/readyz"
	}
	return f
}

func examineCertificate(state *tls.ConnectionState) finding {
	ends := state.PeerCertificates[0].NotAfter
	f := finding{Name: "tls", OK: true, Detail: tls.VersionName(state.Version) + ", certificate until " + clock(ends), Why: "from then on nothing is sent"}
	if time.Until(ends) < soon {
		f.Remedy = "have the operator renew the certificate"
	}
	return f
}

func timeDifference(difference time.Duration) finding {
	f := finding{Name: "time", OK: true, Detail: "as the service's", Why: "a consent's time and the end of credentials are compared with the service's clock"}
	if difference.Abs() > mostTimeDiff {
		f.OK, f.Detail = false, fmt.Sprintf("%s apart from the service's", difference.Abs().Round(time.Second))
		f.Remedy, f.Command = "synchronise this computer's clock, or the service's", "sudo timedatectl set-ntp true"
	}
	return f
}

// examineCredentials asks with each credential for what it may read. None at all is no fault.
func (c *connection) examineCredentials(ctx context.Context) (found []finding) {
	kept := c.chosen
	if !sameAddress(c.server, c.chosen.URL) {
		kept = profile{}
	}
	for _, one := range []struct {
		name  string
		admin bool
		kept  bool
		take  func(token string)
	}{
		{"credential", false, kept.Credential+kept.Reader != "", func(token string) { kept.Credential, kept.Reader = token, "" }},
		{"admin token", true, kept.AdminToken != "", func(token string) { kept.AdminToken = token }},
	} {
		given, err := c.fromFlag(one.admin)
		if given == "" && err == nil && !(c.named && one.kept) {
			given, err = c.fromEnvironment(one.admin)
		}
		if err != nil {
			found = append(found, finding{Name: one.name, Detail: err.Error(), Remedy: first(nextStep(err), "name a file that holds it"), Why: "without it nothing can be done"})
			one.take("")
		} else if given != "" {
			one.take(given)
		}
	}
	for _, one := range []struct{ name, token string }{{"credential", kept.Credential}, {"reader", kept.Reader}} {
		if one.token != "" {
			found = append(found, c.examineCredential(ctx, one.name, one.token))
		}
	}
	if kept.AdminToken != "" {
		found = append(found, c.examineAdmin(ctx, kept.AdminToken)...)
	}
	if len(found) == 0 {
		found = append(found, finding{
			Name: "credential", OK: true, Detail: "none", Why: "most commands need one",
			Remedy: "set " + envToken + " or keep one in a profile", Command: "accession profile add NAME --url " + c.server + " --org ORG --credential-file FILE",
		})
	}
	return found
}

func (c *connection) examineCredential(ctx context.Context, name, token string) finding {
	f := finding{Name: name, Why: "every request with it is refused"}
	if c.org == "" {
		f.Detail, f.Remedy = "cannot be tried without its organization", "give --org, set "+envOrg+", or keep it in the profile"
		return f
	}
	service, err := client.New(c.server, client.WithToken(token))
	if err == nil {
		// Each of these takes another role: one that is not this credential's is refused with 403, a credential that is not good with 401.
		if _, err = service.Quota(ctx, c.org); err != nil && exitCode(err) == exitNotAuthorised {
			var records *client.RecordPage
			if records, err = service.RequestRecords(ctx, c.org, client.RecordFilter{Limit: 1}); err == nil && records != nil {
				f.OK, f.Detail = true, "accepted for "+c.org+", reads contexts"
				return f
			}
		} else if err == nil {
			f.OK, f.Detail = true, "accepted for "+c.org
			return f
		}
	}
	f.Detail = err.Error()
	f.Remedy = first(nextStep(err), "give the operator the request_id")
	f.Command = "accession credentials issue --org " + c.org + " --role ROLE"
	return f
}

// examineAdmin tells whether the admin token is accepted, and what ends soon.
func (c *connection) examineAdmin(ctx context.Context, token string) []finding {
	f := finding{Name: "admin token", Why: "every request with it is refused"}
	service, err := client.New(c.server, client.WithAdminToken(token))
	var page *client.CredentialPage
	if err == nil {
		page, err = service.ListCredentials(ctx, client.CredentialQuery{OrgID: c.org, Limit: 100})
	}
	if err != nil {
		f.Detail, f.Remedy = err.Error(), first(nextStep(err), "give the operator the request_id")
		return []finding{f}
	}
	f.OK, f.Detail = true, "accepted"
	found := []finding{f}
	for _, one := range page.Credentials {
		if left := time.Until(one.ExpiresAt); left < soon && !one.ExpiresAt.IsZero() {
			found = append(found, finding{
				Name: "expiry", OK: true, Detail: fmt.Sprintf("%s (%s, %s) ends %s", one.CredentialID, one.OrgID, one.Role, clock(one.ExpiresAt)),
				Remedy: "issue its successor and hand it over", Command: "accession credentials rotate " + one.CredentialID, Why: "whoever uses it is refused from then on",
			})
		}
	}
	return found
}
