package scanner

import (
	"fmt"
	"strings"
	"time"
)

// parseScanReply turns clamd's reply to INSTREAM into an outcome. Everything that is not understood is an error.
func parseScanReply(text string) (Report, error) {
	if text == "stream: OK" {
		return Report{Outcome: Clean}, nil
	}
	if text == "INSTREAM size limit exceeded. ERROR" {
		return Report{Outcome: Unscannable, Reason: "The content is larger than the scan engine accepts " +
			"(its setting StreamMaxLength)."}, nil
	}
	name, ok := strings.CutPrefix(text, "stream: ")
	if ok {
		name, ok = strings.CutSuffix(name, " FOUND")
	}
	if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
		return Report{}, unavailable("clamd answered %q", clip(text))
	}
	name = printable(name)
	if reason := couldNotLook(name); reason != "" {
		return Report{Outcome: Unscannable, Reason: reason}, nil
	}
	return Report{Outcome: Infected, Signature: name}, nil
}

// couldNotLook returns a sentence when the name is clamd's way of saying that it did not see everything, else "".
// A real signature can have "Encrypted" in its name (Win.Ransomware.Encrypted-1), so the prefix decides.
func couldNotLook(name string) string {
	if limit, ok := strings.CutPrefix(name, "Heuristics.Limits."); ok {
		return fmt.Sprintf("The content is larger or more deeply nested than the scan engine examines (%s).",
			strings.TrimPrefix(limit, "Exceeded."))
	}
	kind, ok := strings.CutPrefix(strings.TrimPrefix(name, "Heuristics."), "Encrypted.")
	if ok {
		return fmt.Sprintf("The content, or a part of it, is encrypted, so the scan engine cannot look inside (%s).", kind)
	}
	return ""
}

// parseVersion reads clamd's reply to VERSION: "ClamAV 1.4.6" without, "ClamAV 1.4.6/27460/Tue Nov 18 08:35:21 2026"
// with the daily database. clamd prints the date in its own time zone without naming it: zone is our guess.
func parseVersion(text string, zone *time.Location) (Engine, error) {
	version, ok := strings.CutPrefix(text, "ClamAV ")
	fields := strings.Split(version, "/")
	if !ok || fields[0] == "" || (len(fields) != 1 && len(fields) != 3) || printable(version) != version {
		return Engine{}, unavailable("clamd answered %q to VERSION", clip(text))
	}
	engine := Engine{Name: "ClamAV", Version: fields[0]}
	if len(fields) == 1 {
		return engine, nil
	}
	date, err := time.ParseInLocation(time.ANSIC, fields[2], zone)
	if err != nil || fields[1] == "" {
		return Engine{}, unavailable("clamd answered %q to VERSION", clip(text))
	}
	engine.SignatureVersion, engine.SignatureDate, engine.FullDatabase = fields[1], date.UTC(), true
	return engine, nil
}

// printable keeps what terminals and logs take for commands out of a name. The name of a signature is of visible ASCII; whatever
// else it is called, the content is not clean.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
}

// clip keeps what a stranger on the socket says short enough for a log line.
func clip(text string) string {
	if len(text) > 120 {
		return text[:120] + "…"
	}
	return text
}
