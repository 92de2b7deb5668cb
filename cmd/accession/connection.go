package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

const (
	envServer     = "ACCESSION_URL"
	envOrg        = "ACCESSION_ORG"
	envToken      = "ACCESSION_TOKEN"
	envAdminToken = "ACCESSION_ADMIN_TOKEN"
)

// maxTokenFileBytes is far above any credential; more is another file by mistake.
const maxTokenFileBytes = 16 << 10

// defaultServer is where make run has its service.
const defaultServer = "http://127.0.0.1:8080"

// connection holds the flags every client command shares.
type connection struct {
	app            *App
	server, org    string
	profileName    string
	tokenFile      string
	adminTokenFile string
	json, quiet    bool

	named  bool         // the command line names the profile: what that holds goes before the environment
	theirs bool         // the address is the profile's
	chosen profile      // by --profile, the environment, or as the one in use; zero: none
	reader bool         // what the command does takes an AI reader's credential
	say    func(string) // where notes go; nil: to standard error
}

// register adds the flags. admin adds --admin-token-file; token adds --token-file.
func (c *connection) register(app *App, cmd *cobra.Command, token, admin bool) {
	c.app = app
	flags := cmd.Flags()
	flags.SortFlags = false
	org := "organization the credential is bound to"
	if !token { // the admin token is bound to none
		org = "organization"
	}
	flags.StringVar(&c.org, "org", app.Getenv(envOrg), org+" ($"+envOrg+")")
	flags.StringVar(&c.server, "server", app.Getenv(envServer), "address of the service ($"+envServer+"); default: the profile's, or "+defaultServer)
	flags.StringVar(&c.profileName, "profile", app.Getenv(envProfile), "profile, before the environment; $"+envProfile+" or the one in use goes after it")
	if token {
		flags.StringVar(&c.tokenFile, "token-file", "", "file with the credential, - for standard input; default $"+envToken)
	}
	if admin {
		flags.StringVar(&c.adminTokenFile, "admin-token-file", "", "file with the admin token, - for standard input; default $"+envAdminToken)
	}
	flags.BoolVar(&c.json, "json", false, "print the data object as JSON")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "print results and errors only")
	cmd.PreRunE = func(*cobra.Command, []string) error { return c.resolve(flags.Changed) }
}

// resolve takes from the profile what neither a flag nor the environment gave; from one that a flag names, whatever no flag gave.
func (c *connection) resolve(given func(flag string) bool) error {
	name, named := c.profileName, given("profile")
	c.named = named && name != ""
	kept, err := c.app.profiles()
	switch {
	case errors.Is(err, fs.ErrPermission) && name == "":
		kept = &profiles{} // another user's folder, by sudo for example
	case err != nil:
		return err
	}
	if name == "" && !named {
		name = kept.Current
	}
	if name != "" {
		if c.chosen, err = kept.find(name); err != nil {
			return err
		}
		c.profileName = name
	}
	if c.named && !given("server") {
		c.server = c.chosen.URL
	}
	if c.named && !given("org") {
		c.org = first(c.chosen.Org, c.org)
	}
	c.theirs = name != "" && !given("server") && (c.named || c.server == "")
	c.server, c.org = first(c.server, c.chosen.URL, defaultServer), first(c.org, c.chosen.Org)
	return nil
}

// first is the first of texts that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// sameAddress says whether two URLs name one service.
func sameAddress(a, b string) bool {
	one, err1 := url.Parse(a)
	two, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && strings.EqualFold(one.Scheme, two.Scheme) && strings.EqualFold(one.Host, two.Host) &&
		strings.TrimRight(one.Path, "/") == strings.TrimRight(two.Path, "/")
}

// fromFlag is the credential, or the admin token, in the file that a flag names.
func (c *connection) fromFlag(admin bool) (string, error) {
	file := c.tokenFile
	if admin {
		file = c.adminTokenFile
	}
	if file == "" {
		return "", nil
	}
	return c.secret(file)
}

// fromEnvironment is the one in the environment. To a profile's address it is sent only where ACCESSION_URL says the same: it may be
// another service's.
func (c *connection) fromEnvironment(admin bool) (string, error) {
	variable := envToken
	if admin {
		variable = envAdminToken
	}
	token := strings.TrimSpace(c.app.Getenv(variable))
	if token != "" && c.theirs && !sameAddress(c.app.Getenv(envServer), c.server) {
		return "", &adviceError{usagef("%s is set, and nothing says that it belongs to %s, the address of profile %s: it is not sent there", variable, maskURL(c.server), c.profileName),
			"unset " + variable + " to use what the profile holds, or set " + envServer + " to the address that it belongs to"}
	}
	return token, nil
}

// fromProfile is the profile's own. It is sent nowhere but to the profile's own address.
func (c *connection) fromProfile(admin bool) (string, error) {
	token := c.chosen.AdminToken
	switch {
	case admin:
	case c.reader:
		token = first(c.chosen.Reader, c.chosen.Credential)
	default:
		token = first(c.chosen.Credential, c.chosen.Reader)
	}
	if token != "" && !sameAddress(c.server, c.chosen.URL) {
		return "", &adviceError{usagef("the credential of profile %s belongs to %s and is not sent to %s", c.profileName, maskURL(c.chosen.URL), maskURL(c.server)),
			"name a file with a credential of that service, or choose its profile"}
	}
	return token, nil
}

// credential is the first that there is: by flag, environment, profile, or, where a flag names the profile, by flag, profile,
// environment; of each the kinds in their order: false is the organization's, true the admin token. Empty: none.
func (c *connection) credential(kinds ...bool) (token string, admin bool, err error) {
	sources := []func(bool) (string, error){c.fromFlag, c.fromEnvironment, c.fromProfile}
	if c.named {
		sources[1], sources[2] = sources[2], sources[1]
	}
	for _, from := range sources {
		for _, admin := range kinds {
			if token, err := from(admin); token != "" || err != nil {
				return token, admin, err
			}
		}
	}
	return "", false, nil
}

func (a *App) env(name, otherwise string) string {
	if value := a.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// note tells a person what goes on, beside the result.
func (c *connection) note(format string, args ...any) {
	text := printable(fmt.Sprintf(format, args...))
	switch {
	case c.quiet:
	case c.say != nil:
		c.say(text)
	default:
		fmt.Fprintln(c.app.Stderr, text)
	}
}

func (c *connection) needOrg() error {
	if c.org == "" {
		return usagef("no organization: give --org, set %s, or use a profile (accession profile add)", envOrg)
	}
	return nil
}

// open returns a client with the organization's credential, or, where admin is allowed and only that is there, the admin token.
func (c *connection) open(admin bool) (*client.Client, error) {
	kinds := []bool{false}
	if admin {
		kinds = append(kinds, true)
	}
	token, isAdmin, err := c.credential(kinds...)
	switch {
	case err != nil:
		return nil, err
	case token == "":
		return nil, usagef("no credential: set %s, name a file with --token-file, or keep one in a profile (accession profile add)", envToken)
	case isAdmin:
		return c.dial(client.WithAdminToken(token))
	}
	return c.dial(client.WithToken(token))
}

// openAdmin returns a client with the admin token.
func (c *connection) openAdmin() (*client.Client, error) {
	token, _, err := c.credential(true)
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, usagef("no admin token: set %s, name a file with --admin-token-file, or keep it in a profile (accession profile add)", envAdminToken)
	}
	return c.dial(client.WithAdminToken(token))
}

func (c *connection) dial(options ...client.Option) (*client.Client, error) {
	opened, err := client.New(c.server, append(options, client.WithUserAgent("accession/"+programVersion()))...)
	if err != nil {
		return nil, usagef("%v; check --server, %s and the token", err, envServer)
	}
	if u, err := url.Parse(c.server); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
		c.note("warning: the credential travels unencrypted to %s; use https", u.Hostname())
	}
	return opened, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// secret reads a credential from a file, or from standard input where that is -. It never appears in an error.
func (c *connection) secret(file string) (string, error) {
	var source io.Reader = c.app.Stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", usagef("token file cannot be read: %v", err)
		}
		defer opened.Close()
		if info, err := opened.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			c.note("warning: %s can be read by other users; chmod 600 it", file)
		}
		source = opened
	}
	content, err := io.ReadAll(io.LimitReader(source, maxTokenFileBytes+1))
	if err != nil {
		return "", usagef("token file cannot be read: %v", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" || len(content) > maxTokenFileBytes {
		return "", usagef("token file %s holds no credential: it has to hold the token and nothing else", file)
	}
	return token, nil
}

// retry is the patience of a short command; an upload has more.
func (c *connection) retry(attempts int) client.Retry {
	retry := c.app.retry
	retry.Attempts = attempts
	retry.Notify = func(err error, wait time.Duration) {
		c.note("%v; trying again in %s", err, seconds(wait))
	}
	return retry
}

// shortAttempts bounds a single request to a few seconds of retries.
const shortAttempts = 4

// target reads [ORG] and what follows it, such as UPLOAD_ID.
func (c *connection) target(args []string) (what string, err error) {
	if len(args) == 2 {
		c.org = args[0]
	}
	return args[len(args)-1], c.needOrg()
}
