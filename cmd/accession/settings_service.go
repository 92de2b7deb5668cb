package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/ratelimit"
	"github.com/accession/accession/internal/telemetry"
)

// listenSettings say where the service is reached.
type listenSettings struct {
	Listen  string `setting:"listen" default:"127.0.0.1:8080" usage:"address to listen on, HOST:PORT"`
	BaseURL string `setting:"base-url" usage:"URL that clients reach the service at; default: the listen address"`
	MCPURL  string `setting:"mcp-url" usage:"URL that agents reach the tool protocol at; default: the base URL with /mcp"`

	SecurityContact string `setting:"security-contact" usage:"mailto: or https: URL for reports of weaknesses, in security.txt; default: the project's"`
}

func (s *listenSettings) check() error {
	if !hostPort(s.Listen) {
		return wrong("listen", "must be HOST:PORT, such as 127.0.0.1:8080")
	}
	if s.BaseURL != "" && !webURL(s.BaseURL) {
		return wrong("base-url", "must be a URL such as https://custody.example")
	}
	if s.MCPURL != "" && (!webURL(s.MCPURL) || !ownPath(s.MCPURL)) {
		return wrong("mcp-url", "must be a URL with a path of its own, such as https://custody.example/mcp")
	}
	if s.SecurityContact != "" && !contact(s.SecurityContact) {
		return wrong("security-contact", "must be such as mailto:security@custody.example or https://custody.example/report")
	}
	return nil
}

func hostPort(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

func webURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// baseURL that answers name, for the address that is really listened on.
func (s *settings) baseURL(listening net.Addr) string {
	if s.BaseURL != "" {
		return strings.TrimRight(s.BaseURL, "/")
	}
	if s.TLSCert != "" {
		return fmt.Sprintf("https://%s", listening)
	}
	return fmt.Sprintf("http://%s", listening)
}

// tlsSettings let the service speak TLS itself.
type tlsSettings struct {
	TLSCert string `setting:"tls-cert" usage:"PEM file of the certificate and its chain; read anew when it changes; default: no TLS"`
	TLSKey  string `setting:"tls-key" usage:"PEM file of the certificate's private key"`
}

func (s *tlsSettings) check() error {
	switch {
	case s.TLSCert == "" && s.TLSKey == "":
		return nil
	case s.TLSKey == "":
		return wrong("tls-cert", "needs the file of its private key; set --tls-key, too")
	case s.TLSCert == "":
		return wrong("tls-key", "needs the file of its certificate; set --tls-cert, too")
	}
	if _, err := loadCertificate(s.TLSCert, s.TLSKey); err != nil {
		return wrong("tls-cert", "cannot be used: %v", err)
	}
	return nil
}

// requestSettings bound who may ask how often, and how much at once.
type requestSettings struct {
	RequestSlots      string `setting:"request-slots" form:"pairs" usage:"off, or requests under way at once by class, such as upload=64,read=512; one organization gets half of them"`
	ClientConnections int64  `setting:"client-connections" default:"0" usage:"connections of clients at once; 0: 4096, or half of the file descriptors if those are fewer"`
	RateLimits        string `setting:"rate-limits" form:"pairs" usage:"off, or requests per second / burst by class, such as read=50/200,write=20/100"`
	TrustedProxies    string `setting:"trusted-proxies" form:"list" usage:"networks of the proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8"`
}

func (s *requestSettings) check() error {
	if _, err := ratelimit.Parse(s.RateLimits); err != nil {
		return wrong("rate-limits", "cannot be used: %v", err)
	}
	if _, err := ratelimit.ParseSlots(s.RequestSlots); err != nil {
		return wrong("request-slots", "cannot be used: %v", err)
	}
	if s.ClientConnections < 0 {
		return wrong("client-connections", "must be 0 or more")
	}
	_, err := s.proxies()
	return err
}

// connections of clients that may be open at once.
func (s *requestSettings) connections() int {
	if s.ClientConnections > 0 {
		return int(s.ClientConnections)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections
	}
	return int(max(1, min(mostConnections, files.Cur/2)))
}

const mostConnections = 4096

// proxies are the networks whose word on where a request comes from is believed.
func (s *requestSettings) proxies() (networks []netip.Prefix, err error) {
	for text := range strings.SplitSeq(s.TrustedProxies, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, single := netip.ParseAddr(text)
			if single != nil {
				return nil, wrong("trusted-proxies", "has %q, which must be a network or an address, such as 10.0.0.0/8", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// The roles of a process.
const (
	roleAPI    = "api"
	roleWorker = "worker"
	roleAll    = "all"
)

// processSettings say what this process does, and how it ends.
type processSettings struct {
	Roles      string        `setting:"roles" default:"all" form:"list" usage:"what this process does: all, api (answers requests) or worker (runs gates and deletions)"`
	DrainDelay time.Duration `setting:"drain-delay" default:"0" usage:"how long requests are still taken after SIGTERM, while /readyz fails already: what your balancer needs to notice"`
	DrainTime  time.Duration `setting:"drain-time" default:"5s" usage:"how long requests may then take to end"`
}

func (s *processSettings) check() error {
	for role := range strings.SplitSeq(s.Roles, ",") {
		if !slices.Contains([]string{roleAPI, roleWorker, roleAll}, strings.TrimSpace(role)) {
			return wrong("roles", "must be all, api or worker")
		}
	}
	if s.DrainDelay < 0 || s.DrainDelay > maxDrain {
		return wrong("drain-delay", "must be a duration from 0 to %s, such as 10s", maxDrain)
	}
	if s.DrainTime <= 0 || s.DrainTime > maxDrain {
		return wrong("drain-time", "must be a duration up to %s, such as 30s", maxDrain)
	}
	return nil
}

// maxDrain is far above what supervisors wait before they kill.
const maxDrain = time.Hour

// has tells whether this process has a role.
func (s *processSettings) has(role string) bool {
	for given := range strings.SplitSeq(s.Roles, ",") {
		if given = strings.TrimSpace(given); given == role || given == roleAll {
			return true
		}
	}
	return false
}

// webhookSettings are about deliveries to addresses that organizations name.
type webhookSettings struct {
	WebhookPrivateAddresses string        `setting:"webhook-private-addresses" default:"refuse" usage:"refuse, or allow: callbacks to loopback and private addresses, and over http"`
	WebhookTimeout          time.Duration `setting:"webhook-timeout" default:"15s" usage:"how long a receiver may take to answer"`
	WebhookRetryDelays      string        `setting:"webhook-retry-delays" default:"5s,30s,2m,10m,30m,1h,2h,4h" form:"list" usage:"before the second attempt of a delivery, the third, and so on; the last one repeats"`
	WebhookRetryFor         time.Duration `setting:"webhook-retry-for" default:"72h" usage:"how long a delivery is tried before it is dead"`
}

func (s *webhookSettings) check() error {
	if s.webhookDelays() == nil {
		return wrong("webhook-retry-delays", "must be durations such as 5s,1m,1h")
	}
	if s.WebhookTimeout <= 0 || s.WebhookTimeout > time.Minute {
		return wrong("webhook-timeout", "must be a duration up to 1m, such as 15s")
	}
	if s.WebhookRetryFor <= 0 || s.WebhookRetryFor > 30*24*time.Hour {
		return wrong("webhook-retry-for", "must be a duration up to 720h, such as 72h")
	}
	if s.WebhookPrivateAddresses != "refuse" && s.WebhookPrivateAddresses != "allow" {
		return wrong("webhook-private-addresses", "must be refuse or allow")
	}
	return nil
}

// telemetrySettings say who watches.
type telemetrySettings struct {
	MetricsListen string `setting:"metrics-listen" usage:"address for Prometheus metrics, HOST:PORT; default: none"`
	OTLPEndpoint  string `setting:"otlp-endpoint" usage:"URL of an OpenTelemetry collector that takes traces over HTTP, such as http://127.0.0.1:4318; default: none"`
}

func (s *telemetrySettings) check() error {
	if s.MetricsListen != "" && !hostPort(s.MetricsListen) {
		return wrong("metrics-listen", "must be HOST:PORT, such as 127.0.0.1:9090")
	}
	if s.OTLPEndpoint == "" {
		return nil
	}
	if err := telemetry.CheckEndpoint(s.OTLPEndpoint); err != nil {
		return wrong("otlp-endpoint", "%v", err)
	}
	return nil
}
