package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/extract"
	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/ratelimit"
)

// settings of `accession serve`. Every flag has an environment variable of the same name. (Contract decisions, "Starting it".)
type settings struct {
	Data           string
	Listen         string
	BaseURL        string
	Database       string
	Blobs          string
	Quarantine     string
	Keys           string
	Cache          string
	ClamdAddress   string
	ClamAVDatabase string
	QuotaBytes     int64
	PartSizeBytes  int64
	OCRLanguages   string
	MissingWalls   string
	GateDeadlines  string
	Reservation    string
	RateLimits     string
	TrustedProxies string
	MetricsListen  string

	KeyBackupHorizon string

	SignaturesMaxAge string
	SignaturesCheck  string
}

// flags defines the settings; what the command line leaves out comes from the environment, then from the default.
func (s *settings) flags(f *pflag.FlagSet, getenv func(string) string) {
	text := func(p *string, name, fallback, usage string) {
		env := environment(name)
		if v := getenv(env); v != "" {
			fallback = v
		}
		f.StringVar(p, name, fallback, usage+" ("+env+")")
	}
	text(&s.Data, "data", "", "folder of this installation; everything else defaults to places in it")
	text(&s.Listen, "listen", "127.0.0.1:8080", "address to listen on, HOST:PORT")
	text(&s.BaseURL, "base-url", "", "URL that clients reach the service at; default: the listen address")
	text(&s.Database, "database", "", "metadata database; default: SQLite in the data folder")
	text(&s.Blobs, "blobs", "", "staging storage; default: a folder in the data folder")
	text(&s.Quarantine, "quarantine", "", "quarantine storage, a second root; default: a folder in the data folder")
	text(&s.Keys, "keys", "", "file of the key-encryption key, or URL of a key service (awskms, gcpkms, azurekeyvault, hashivault); default: a file made in the data folder")
	text(&s.Cache, "cache", "", "folder for compiled engines; default: the user's cache folder")
	text(&s.ClamdAddress, "clamd-address", "", "unix:/path or tcp:HOST:PORT of a clamd; default: one managed by the service")
	text(&s.ClamAVDatabase, "clamav-database", "", "signature folder of the managed clamd; default: the system's")
	text(&s.OCRLanguages, "ocr-languages", "eng", "languages of scans, most likely first, such as eng,deu; each is a package tesseract-ocr-LANGUAGE")
	text(&s.MissingWalls, "missing-walls", "refuse", "refuse, or allow: read documents even where the kernel lacks a wall of the cage")
	text(&s.SignaturesMaxAge, "signatures-max-age", "0", "older malware signatures hold the malware gate, such as 168h; 0: of any age")
	text(&s.SignaturesCheck, "signatures-check-every", time.Minute.String(), "how often to look for other malware signatures, which re-scan what is stored; at least 1s")
	text(&s.GateDeadlines, "gate-deadlines", "", "shorter or longer gate deadlines, such as malware_scan=30m,extraction=2h")
	text(&s.Reservation, "reservation-lifetime", custody.ReservationLifetime.String(), "how long an upload may take from initiate to complete")
	text(&s.KeyBackupHorizon, "key-backup-horizon", defaultKeyBackupHorizon, "how long you keep backups of the key store; withdrawal receipts state it")
	text(&s.RateLimits, "rate-limits", "", "off, or requests per second / burst by class, such as read=50/200,write=20/100")
	text(&s.TrustedProxies, "trusted-proxies", "", "networks of the proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	text(&s.MetricsListen, "metrics-listen", "", "address for Prometheus metrics, HOST:PORT; default: none")
	number := func(p *int64, name string, fallback int64, usage string) {
		f.Var(&bytesValue{p, fallback, getenv(environment(name)), environment(name)}, name, usage+" ("+environment(name)+")")
	}
	number(&s.QuotaBytes, "quota-bytes", custody.DefaultAllowanceBytes, "storage allowance of a new organization in bytes")
	number(&s.PartSizeBytes, "part-size-bytes", custody.DefaultPartSizeBytes, "length of every part but the last in bytes, a multiple of 64")
}

func environment(flag string) string {
	return "ACCESSION_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// bytesValue is a number of bytes from the command line, else the environment, else a default.
type bytesValue struct {
	to       *int64
	fallback int64
	env      string
	name     string
}

func (v *bytesValue) String() string {
	if v.to == nil {
		return ""
	}
	return strconv.FormatInt(v.fallback, 10)
}
func (v *bytesValue) Type() string { return "bytes" }
func (v *bytesValue) Set(text string) (err error) {
	*v.to, err = strconv.ParseInt(text, 10, 64)
	v.env = ""
	return err
}

var _ pflag.Value = (*bytesValue)(nil)

// check completes the settings and refuses what cannot work, saying what to change.
func (s *settings) check(f *pflag.FlagSet) error {
	for _, name := range []string{"quota-bytes", "part-size-bytes"} {
		v := f.Lookup(name).Value.(*bytesValue)
		switch {
		case f.Changed(name):
		case v.env != "":
			if err := v.Set(v.env); err != nil {
				return usagef("%s must be a whole number of bytes", v.name)
			}
		default:
			*v.to = v.fallback
		}
	}
	if s.Data == "" {
		return usagef("no data folder: write accession serve --data DIR")
	}
	data, err := filepath.Abs(s.Data)
	if err != nil {
		return err
	}
	s.Data = data
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		return usagef("--listen must be HOST:PORT, such as 127.0.0.1:8080")
	}
	if s.PartSizeBytes <= 0 || s.PartSizeBytes%64 != 0 {
		return usagef("--part-size-bytes must be a positive multiple of 64")
	}
	if s.QuotaBytes < 0 {
		return usagef("--quota-bytes must not be negative")
	}
	if d, err := time.ParseDuration(s.Reservation); err != nil || d <= 0 {
		return usagef("--reservation-lifetime must be a duration, such as 24h")
	}
	if d, err := time.ParseDuration(s.KeyBackupHorizon); err != nil || d < 0 || d%time.Second != 0 {
		return usagef("--key-backup-horizon must be a duration in whole seconds, such as 720h, or 0 for no backups")
	}
	if d, err := time.ParseDuration(s.SignaturesMaxAge); err != nil || d < 0 {
		return usagef("--signatures-max-age must be a duration, such as 168h, or 0 for any age")
	}
	if d, err := time.ParseDuration(s.SignaturesCheck); err != nil || d < time.Second {
		return usagef("--signatures-check-every must be a duration of at least 1s, such as 1m")
	}
	if s.Database != "" {
		return usagef("--database: this version keeps its metadata in SQLite in the data folder; leave it out")
	}
	for _, root := range []struct {
		name, fallback string
		value          *string
	}{{"blobs", "blobs", &s.Blobs}, {"quarantine", "quarantine", &s.Quarantine}, {"keys", "key-encryption.key", &s.Keys}} {
		if *root.value == "" {
			*root.value = filepath.Join(s.Data, root.fallback)
		}
		if root.name == "keys" {
			service, err := keystore.IsKeyService(*root.value)
			if err != nil {
				return usagef("--keys: %v", err)
			}
			if service {
				continue
			}
		}
		path := strings.TrimPrefix(*root.value, "file://")
		if strings.Contains(path, "://") {
			return usagef("--%s: this version takes a path, or file:///path", root.name)
		}
		if *root.value, err = filepath.Abs(path); err != nil {
			return err
		}
	}
	if s.Blobs == s.Quarantine {
		return usagef("--blobs and --quarantine must be different folders: quarantine is a second copy")
	}
	if s.Cache == "" {
		s.Cache = filepath.Join(s.Data, "cache")
		if user, err := os.UserCacheDir(); err == nil {
			s.Cache = filepath.Join(user, "accession")
		}
	}
	if s.BaseURL != "" {
		if u, err := url.Parse(s.BaseURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usagef("--base-url must be a URL such as https://custody.example")
		}
	}
	if _, err := ratelimit.Parse(s.RateLimits); err != nil {
		return usagef("--rate-limits: %v", err)
	}
	if _, err := s.proxies(); err != nil {
		return err
	}
	for _, language := range s.languages() {
		if !ocrLanguage.MatchString(language) {
			return usagef("--ocr-languages: %q must be the name of a language of tesseract, such as eng", language)
		}
	}
	if s.MissingWalls != "refuse" && s.MissingWalls != "allow" {
		return usagef("--missing-walls must be refuse or allow")
	}
	if s.MetricsListen != "" {
		if _, _, err := net.SplitHostPort(s.MetricsListen); err != nil {
			return usagef("--metrics-listen must be HOST:PORT, such as 127.0.0.1:9090")
		}
	}
	_, err = s.gates()
	return err
}

// ocrLanguage is a name as tesseract's data files have: eng, chi_sim, script/Latin.
var ocrLanguage = regexp.MustCompile(`^[A-Za-z][A-Za-z_]*(/[A-Za-z_]+)?$`)

func (s *settings) languages() (languages []string) {
	for language := range strings.FieldsFuncSeq(s.OCRLanguages, func(r rune) bool { return strings.ContainsRune(", +", r) }) {
		languages = append(languages, language)
	}
	return languages
}

// extraction is the configuration of the extractor, for the service and for the doctor.
func (s *settings) extraction(log *slog.Logger) extract.Config {
	return extract.Config{CacheDir: s.Cache, Languages: s.languages(), AllowMissingWalls: s.MissingWalls == "allow", Log: log}
}

// proxies are the networks whose word on where a request comes from is believed.
func (s *settings) proxies() (networks []netip.Prefix, err error) {
	for text := range strings.SplitSeq(s.TrustedProxies, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, single := netip.ParseAddr(text)
			if single != nil {
				return nil, usagef("--trusted-proxies: %q must be a network or an address, such as 10.0.0.0/8", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// gates is the gate table with the deadlines of this installation.
func (s *settings) gates() ([]custody.Gate, error) {
	gates := append([]custody.Gate(nil), custody.Gates...)
	for setting := range strings.SplitSeq(s.GateDeadlines, ",") {
		if setting == "" {
			continue
		}
		name, text, _ := strings.Cut(setting, "=")
		deadline, err := time.ParseDuration(text)
		known := false
		for i := range gates {
			if string(gates[i].Name) == name {
				gates[i].Deadline, gates[i].Attempt, known = deadline, min(gates[i].Attempt, deadline), true
			}
		}
		if err != nil || deadline <= 0 || !known {
			return nil, usagef("--gate-deadlines: %q must be a gate and a duration, such as malware_scan=30m", setting)
		}
	}
	return gates, nil
}

// reservation is how long an upload may take from initiate to complete.
func (s *settings) reservation() time.Duration {
	d, _ := time.ParseDuration(s.Reservation) // checked
	return d
}

// keyBackupHorizon is how long backups of the key store are kept.
func (s *settings) keyBackupHorizon() time.Duration {
	d, _ := time.ParseDuration(s.KeyBackupHorizon) // checked
	return d
}

// signaturesMaxAge is the age at which signatures hold the malware gate; 0: never.
func (s *settings) signaturesMaxAge() time.Duration {
	d, _ := time.ParseDuration(s.SignaturesMaxAge) // checked
	return d
}

// signaturesCheck is the time between looks for other signatures.
func (s *settings) signaturesCheck() time.Duration {
	d, _ := time.ParseDuration(s.SignaturesCheck) // checked
	return d
}

// baseURL that answers name, for the address that is really listened on.
func (s *settings) baseURL(listening net.Addr) string {
	if s.BaseURL != "" {
		return strings.TrimRight(s.BaseURL, "/")
	}
	return fmt.Sprintf("http://%s", listening)
}
