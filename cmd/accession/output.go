package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
)

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

// paint colours text for a terminal, and not where NO_COLOR or a dumb terminal says otherwise.
func (a *App) paint(terminal bool, colour, text string) string {
	if !terminal || a.Getenv("NO_COLOR") != "" || a.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// printData prints a data object for machines, with fields this program has no name for.
func (a *App) printData(data json.RawMessage) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, data, "", "  "); err != nil {
		return fmt.Errorf("indent answer: %w", err)
	}
	_, err := fmt.Fprintln(a.Stdout, indented.String())
	return err
}

// row prints one named value; empty values are left out.
func (a *App) row(name, value string) {
	if value != "" {
		fmt.Fprintf(a.Stdout, "%-11s %s\n", name, oneLine(value))
	}
}

// printable shows control and direction characters instead of letting them act on the terminal: file names, details and
// contexts are written by strangers.
func printable(text string) string {
	if !strings.ContainsFunc(text, acts) {
		return text
	}
	var shown strings.Builder
	for _, r := range text {
		if acts(r) {
			fmt.Fprintf(&shown, `\u%04x`, r)
		} else {
			shown.WriteRune(r)
		}
	}
	return shown.String()
}

// oneLine is printable on one line.
func oneLine(text string) string {
	return strings.ReplaceAll(printable(text), "\n", " ")
}

func acts(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

func bytesText(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// seconds rounds a duration for people.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", max(0, d.Seconds()))
	}
	return d.Round(time.Second).String()
}
