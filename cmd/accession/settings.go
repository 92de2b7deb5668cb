package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/accession/accession/internal/blobstore"
)

// settings of `accession serve`, each part with its own struct and its own check. (Contract decisions, "Starting it".)
//
// A new setting is ONE LINE: a field of the part it belongs to, in the settings_*.go that has the part. Its tags:
//
//	setting  its name: flag --a-b, environment ACCESSION_A_B, key a_b of the configuration file
//	default  as one would write it; without: empty, 0, false
//	usage    its line of the help
//	form     list or pairs: text with commas, which the file may also spell out as a sequence (pairs: as a mapping)
//	secret   yes: never on the command line, never shown. url: shown without its password.
//	         Either way NAME-file names a file that holds it.
//
// Its type is string, bool, int64 (bytes, if its name ends so) or time.Duration. What must hold of it is a line in the part's
// check. It also has a row in docs/operations.md; a test misses it there.
type settings struct {
	storageSettings
	keySettings
	listenSettings
	tlsSettings
	requestSettings
	processSettings
	intakeSettings
	scannerSettings
	extractionSettings
	webhookSettings
	telemetrySettings

	all      []*setting
	warnings []string // of check: what works, and is hardly meant
	secrets  []secretFile
	getenv   func(string) string
}

// settingsPart is some settings that are checked together. check completes them, and returns wrong(…) where one cannot work.
type settingsPart interface{ check() error }

func (s *settings) parts() []settingsPart {
	return []settingsPart{
		&s.storageSettings, &s.keySettings, &s.listenSettings, &s.tlsSettings, &s.requestSettings, &s.processSettings,
		&s.intakeSettings, &s.scannerSettings, &s.extractionSettings, &s.webhookSettings, &s.telemetrySettings,
	}
}

// setting is one field with what its tags say, and what was given for it.
type setting struct {
	name, fallback, usage, form, secret string

	value reflect.Value
	given given
}

// given is a value as somebody wrote it. The zero value: nobody did.
type given struct {
	text string
	by   source
	at   string // how to name the setting to whoever gave it: --listen, ACCESSION_LISTEN, listen (FILE, line 3)
}

type source string

const (
	byDefault     source = "default"
	byFile        source = "file"
	byEnvironment source = "environment"
	byFlag        source = "flag"
)

// flags defines the settings; load reads what was given.
func (s *settings) flags(f *pflag.FlagSet, getenv func(string) string) {
	s.getenv = getenv
	f.String(configFlag, "", "YAML file with settings; a key is a flag's name with _ for - ("+environment(configFlag)+")")
	for _, p := range s.parts() {
		fields := reflect.ValueOf(p).Elem()
		for i := range fields.NumField() {
			tag := fields.Type().Field(i).Tag
			one := &setting{
				name: tag.Get("setting"), fallback: tag.Get("default"), usage: tag.Get("usage"), form: tag.Get("form"), secret: tag.Get("secret"),
				value: fields.Field(i),
			}
			s.all = append(s.all, one)
			of := one.usage
			if one.secret != "yes" {
				f.VarPF(&flagText{kind: one.kind(), text: one.fallback}, one.name, "", one.usage+" ("+environment(one.name)+")").NoOptDefVal = one.bare()
				of = "the value of --" + one.name
			}
			if one.secret != "" {
				f.VarP(&flagText{kind: "file"}, one.name+fileSuffix, "", "file with "+of+" ("+environment(one.name+fileSuffix)+")")
			}
		}
	}
}

// kind is what the help calls the value.
func (one *setting) kind() string {
	switch one.value.Interface().(type) {
	case int64:
		if strings.HasSuffix(one.name, "-bytes") {
			return "bytes"
		}
		return "number"
	case time.Duration:
		return "duration"
	case bool:
		return "bool"
	}
	return "string"
}

// bare is what a flag without a value means.
func (one *setting) bare() string {
	if one.value.Kind() == reflect.Bool {
		return "true"
	}
	return ""
}

// flagText keeps what the command line says; load makes the value, the same way for every source.
type flagText struct{ kind, text string }

func (v *flagText) String() string        { return v.text }
func (v *flagText) Type() string          { return v.kind }
func (v *flagText) Set(text string) error { v.text = text; return nil }

func environment(flag string) string {
	return "ACCESSION_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// wrongError is a setting that cannot work; settings.check names it the way it was given.
type wrongError struct{ name, text string }

func (e *wrongError) Error() string { return e.name + " " + e.text }

// wrong says what a setting must be, in words that follow its name: wrong("listen", "must be HOST:PORT").
func wrong(name, format string, args ...any) error {
	return &wrongError{name, fmt.Sprintf(format, args...)}
}

// check loads the settings, completes them and refuses what cannot work, saying what to change.
func (s *settings) check(f *pflag.FlagSet) error {
	if err := s.load(f); err != nil {
		return err
	}
	return s.validate()
}

// validate is check without load.
func (s *settings) validate() error {
	for _, p := range s.parts() {
		if err := p.check(); err != nil {
			return s.named(err)
		}
	}
	return s.named(s.checkTogether())
}

// checkTogether is about settings of different parts.
func (s *settings) checkTogether() error {
	if s.shared() && s.has(roleAPI) && s.AdminToken == "" {
		return wrong("admin-token", "must be given with a PostgreSQL database: all replicas need the same one; set ACCESSION_ADMIN_TOKEN, or name a file with ACCESSION_ADMIN_TOKEN_FILE")
	}
	if s.s3() && s.PartSizeBytes > blobstore.MaxS3Plain {
		return wrong("part-size-bytes", "must be at most %d with storage in S3: a part is one object", int64(blobstore.MaxS3Plain))
	}
	if s.Keys == "" {
		s.Keys = filepath.Join(s.Data, "key-encryption.key")
	}
	if err := s.checkRoles(); err != nil {
		return err
	}
	s.warnings = s.exposed()
	if s.shared() && s.BaseURL == "" {
		s.warnings = append(s.warnings, "base-url is not set: it is the issuer of access tokens and receipts, and replicas with different ones refuse each other's tokens")
	}
	for _, one := range s.all {
		if s.shared() && (one.name == "blobs" || one.name == "quarantine") && one.given.by == byDefault {
			s.warnings = append(s.warnings, one.name+" is in the data folder, which no other replica sees")
		}
	}
	if s.TLSCert != "" && strings.HasPrefix(s.BaseURL, "http://") {
		return wrong("base-url", "must begin with https:// because the service speaks TLS")
	}
	return nil
}

// checkRoles refuses a process that does one half of the work where no other could do the other half.
func (s *settings) checkRoles() error {
	if s.has(roleAPI) && s.has(roleWorker) {
		return nil
	}
	if s.Database == "" {
		return wrong("roles", "must be all with SQLite, which one process alone uses: nobody else could do the rest of the work; set --database postgres://… to share it")
	}
	if s.BaseURL == "" {
		return wrong("base-url", "is needed where roles are apart: it stands in receipts and tokens, and is the same for every process")
	}
	for _, one := range s.all {
		if slices.Contains([]string{"blobs", "quarantine", "keys"}, one.name) && one.given.by == byDefault {
			return wrong(one.name, "must be set where roles are apart: what is in the data folder no other process sees")
		}
	}
	return nil
}

func (s *settings) named(err error) error {
	var e *wrongError
	if !errors.As(err, &e) {
		return err
	}
	for _, one := range s.all {
		if one.name == e.name && one.given.at != "" {
			return usagef("%s %s", one.given.at, e.text)
		}
	}
	if e.name == "admin-token" { // which is no flag
		return usagef("%s %s", environment(e.name), e.text)
	}
	return usagef("--%s %s", e.name, e.text)
}
