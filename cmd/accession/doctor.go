package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/internal/extract"
	"github.com/accession/accession/internal/scanner"
)

// finding is one line of the doctor's report. Where OK goes with a remedy, things work and could be better.
type finding struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Detail  string `json:"detail"`
	Remedy  string `json:"remedy,omitempty"`  // what is wrong, and what to install or do
	Why     string `json:"why,omitempty"`     // why it matters
	Command string `json:"command,omitempty"` // exactly what mends it
	Fixed   bool   `json:"fixed,omitempty"`   // by --fix

	fix   func() error   // what Command does, where that is safe
	again func() finding // examines once more what fix has changed
}

func newDoctorCommand(app *App) *cobra.Command {
	var s settings
	var asJSON, fix bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what is missing on the service's machine, why it matters, and the command that mends it",
		Long: `Looks at the machine of a service: engines, their versions and signatures, the cage, folders, disk, port, clock and limits.
Each finding says what is wrong, why it matters, and the command that mends it. --fix makes the data folder, if you are not root,
and takes rights on it from others, if it holds a service's files of yours; it installs nothing. accession doctor client looks at
the way from this computer to a service.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.load(cmd.Flags()); err != nil {
				return err
			}
			installed := s.Data != ""
			if !installed {
				s.Data = "." // only the machine is looked at
			}
			if err := s.validate(); err != nil {
				return err
			}
			found := examine(cmd.Context(), s)
			if installed {
				found = append(found, examineFolder(s.Data), examineDisk(s.Data))
			}
			return app.diagnosis(append(found, examineMachine(cmd.Context(), s.Listen)...), fix, asJSON)
		},
	}
	s.flags(cmd.Flags(), app.Getenv)
	cmd.Flags().BoolVar(&fix, "fix", false, "make your data folder, or take rights on it from others; nothing else")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.AddCommand(newDoctorClientCommand(app))
	return cmd
}

// diagnosis mends what it may, prints the findings, and is an error where something is missing.
func (a *App) diagnosis(found []finding, fix, asJSON bool) error {
	bad := 0
	for i := range found {
		f := &found[i]
		f.complete()
		if fix && f.fix != nil {
			if err := f.fix(); err != nil {
				f.Detail += "; not mended: " + err.Error()
			} else if now := f.again(); now.OK && now.Remedy == "" {
				f.OK, f.Fixed, f.Detail = true, true, now.Detail
			} else {
				*f = now
				f.complete()
			}
		}
		if !f.OK {
			bad++
		}
	}
	if asJSON {
		if err := a.printJSON(found); err != nil {
			return err
		}
	} else {
		a.printFindings(found)
	}
	if bad > 0 {
		return &adviceError{fmt.Errorf("%d of %d findings are faults, marked with ✗", bad, len(found)), "do what → says, then run the same command again"}
	}
	return nil
}

// whys say what a part is for; its fault matters for that reason.
var whys = map[string]string{
	"clamd":               "without it the malware gate answers nothing, and no upload becomes READY",
	"signatures":          "clamd finds only what its signatures know",
	"scratch":             "what is scanned would lie in clear on a disk",
	"tesseract":           "pages that are pictures have no text without it",
	"tesseract languages": "pages in another language are read as garbage",
	"landlock":            "it keeps a worker that was taken over by a document from reading files",
	"seccomp":             "it keeps a worker that was taken over by a document from the network",
	"extraction worker":   "it reads every document; without it no upload becomes READY",
}

// complete adds why a finding matters, and the command where the remedy has it in its words.
func (f *finding) complete() {
	if f.Remedy == "" {
		f.Why = ""
		return
	}
	f.Why = first(f.Why, whys[f.Name])
	if f.Command != "" {
		return
	}
	for _, known := range []string{"apt-get install", "chmod -R", "freshclam"} {
		if _, after, ok := strings.Cut(f.Remedy, known); ok {
			rest, _, _ := strings.Cut(known+after, ";")
			if known == "freshclam" {
				rest = known
			}
			f.Command = "sudo " + strings.TrimSpace(rest)
			return
		}
	}
}

func examine(ctx context.Context, s settings) []finding {
	var found []finding
	if s.ClamdAddress == "" {
		found = append(found, examineClamAV(scanner.Inspect(ctx, "", s.ClamAVDatabase), s.SignaturesMaxAge)...)
		found = append(found, examineScratch(scanner.InspectScratch()))
	} else {
		found = append(found, examineClamd(ctx, s.ClamdAddress, s.SignaturesMaxAge))
	}
	found = append(found, examineStorage(ctx, &s.storageSettings)...)
	for _, f := range extract.New(s.extraction(nil)).Inspect(ctx) {
		found = append(found, finding{Name: f.Name, OK: f.OK, Detail: f.Detail, Remedy: f.Remedy})
	}
	return found
}

func examineClamAV(i scanner.Inspection, maxAge time.Duration) []finding {
	program := finding{Name: "clamd", OK: i.Binary.Advice == "", Detail: i.Binary.Path + " " + i.Binary.Version, Remedy: i.Binary.Advice}
	if i.Binary.Path == "" {
		program.Detail = "not found"
	}
	signatures := finding{Name: "signatures", OK: i.Database.Usable, Detail: i.Database.Folder, Remedy: i.Database.Advice}
	switch {
	case !i.Database.Usable:
		signatures.Detail += ": none"
	case !i.Database.Full:
		signatures.Detail += ": test or private signatures only, of " + i.Database.Date.Format(time.DateOnly)
	default:
		signatures.Detail += ": daily " + i.Database.Version + " of " + i.Database.Date.Format(time.DateOnly)
	}
	if i.Database.Usable {
		signatures.examineAge(i.Database.Date, maxAge)
	}
	return []finding{program, signatures}
}

// examineScratch tells where clamd writes what it scans; on disk the service works all the same.
func examineScratch(s scanner.Scratch) finding {
	f := finding{Name: "scratch", OK: true, Detail: "in memory, below " + s.Folder, Remedy: s.Advice}
	if !s.Memory {
		f.Detail = "on disk, in the data folder"
	}
	return f
}

// examineAge warns of old signatures; those that would hold the malware gate are something missing.
func (f *finding) examineAge(date time.Time, maxAge time.Duration) {
	if age := time.Since(date); !date.IsZero() && age > oldSignatures {
		f.Detail += fmt.Sprintf(", %d days old", int(age.Hours()/24))
		if f.Remedy == "" {
			f.Remedy = "the signatures are older than 7 days: run freshclam"
		}
	}
	if maxAge > 0 {
		if reason := outdated(date, maxAge); reason != "" {
			f.OK, f.Remedy = false, "the malware gate holds every upload: "+reason
		}
	}
}

func examineClamd(ctx context.Context, address string, maxAge time.Duration) finding {
	f := finding{Name: "clamd", Detail: address}
	clamd, err := scanner.NewClamd(address)
	if err == nil {
		var engine scanner.Engine
		if engine, err = clamd.Health(ctx); err == nil {
			f.OK, f.Detail = true, fmt.Sprintf("%s: %s %s, signatures %s", address, engine.Name, engine.Version, engine.SignatureVersion)
			if !engine.SignatureDate.IsZero() {
				f.Detail += " of " + engine.SignatureDate.Format(time.DateOnly)
			}
			f.examineAge(engine.SignatureDate, maxAge)
		}
	}
	if err != nil {
		f.Remedy = err.Error()
	}
	return f
}

func (a *App) printFindings(found []finding) {
	width := 0
	for _, f := range found {
		width = max(width, len(f.Name))
	}
	for _, f := range found {
		mark, colour := "✓", green
		switch {
		case f.Fixed:
			mark = "✓"
		case !f.OK:
			mark, colour = "✗", red
		case f.Remedy != "":
			mark, colour = "!", yellow
		}
		fmt.Fprintf(a.Stdout, "%s %-*s  %s\n", a.paint(a.StdoutIsTerminal, colour, mark), width, f.Name, oneLine(f.Detail))
		for _, line := range []struct{ mark, text string }{{"→ ", f.Remedy}, {"  because ", f.Why}, {"  $ ", f.Command}} {
			switch {
			case line.text == "":
			case f.Fixed:
				if line.mark == "  $ " {
					fmt.Fprintf(a.Stdout, "  %-*s  mended: %s\n", width, "", oneLine(line.text))
				}
			default:
				fmt.Fprintf(a.Stdout, "  %-*s  %s%s\n", width, "", line.mark, oneLine(line.text))
			}
		}
	}
}
