// Package scanner asks ClamAV whether content carries malware.
//
//	content ──► Clamd.Scan ──► one INSTREAM per window ──► reply ──► Report
//	                                                          │
//	            no reply, or one we do not know ──────────────┴──► error, never a pass
//
// A Clamd talks to any clamd over its socket. A Managed starts a clamd of its own, keeps it running and
// refuses to scan until that clamd has proved that it finds the EICAR test file. Inspect tells an operator
// what is installed and what is missing.
//
// Source: architecture, "Engines"; contract, gate malware_scan.
package scanner

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrUnavailable means that the engine gave no answer about the content. It says nothing about the content and is
// never a pass; the same scan may succeed later. The text after it is for operators: it can name folders of this
// machine and must not be sent to clients.
var ErrUnavailable = errors.New("malware scanner is unavailable")

// Outcome is the answer of a scan. The zero value is no answer.
type Outcome uint8

// Clean: the engine looked and found nothing. Infected: it found a signature. Unscannable: it could not
// look at all of the content (encrypted, over a limit); not a pass.
const (
	Clean Outcome = iota + 1
	Infected
	Unscannable
)

// String returns the outcome's name in lower case, "invalid" for the zero value.
func (o Outcome) String() string {
	switch o {
	case Clean:
		return "clean"
	case Infected:
		return "infected"
	case Unscannable:
		return "unscannable"
	}
	return "invalid"
}

// Report is what one scan found. Only Outcome == Clean lets content pass.
type Report struct {
	Outcome      Outcome
	Signature    string // the engine's name for what it found; only when Infected
	Reason       string // why it could not look, a sentence for a person; only when Unscannable
	Engine       Engine
	Members      int   // files packed into the content that were scanned each for itself; 0 from Clamd and Managed
	Windows      int   // streams sent for the content as a whole; above 1 the engine never saw the content in one piece
	ScannedBytes int64 // bytes sent to the engine, members included, the overlaps of windows counted twice
}

// Engine describes the engine that answered and the signatures it had loaded.
type Engine struct {
	Name             string    // "ClamAV"
	Version          string    // of the program, such as "1.4.6"
	SignatureVersion string    // of ClamAV's daily database; empty when that is not loaded
	SignatureDate    time.Time // when the signatures were built, UTC; zero when unknown, which is not "fresh"
	// FullDatabase: ClamAV's official signatures are loaded. When false, only test or private signatures are, and Clean
	// means next to nothing. Of a clamd that is not Managed only the daily database can be seen.
	FullDatabase bool
	// Loaded names the signature files that were loaded, and changes with any of them. Empty of a clamd that is not Managed.
	Loaded string
}

// Identity is engine and signatures as one string: content that one identity found clean may not be clean to another.
func (e Engine) Identity() string {
	date := ""
	if !e.SignatureDate.IsZero() {
		date = e.SignatureDate.UTC().Format(time.RFC3339)
	}
	return strings.Join([]string{e.Name, e.Version, e.SignatureVersion, date, e.Loaded}, " ")
}

// unavailable wraps ErrUnavailable with a reason an operator understands.
func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, fmt.Errorf(format, args...))
}
