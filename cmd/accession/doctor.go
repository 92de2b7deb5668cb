package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/accession/accession/internal/extract"
	"github.com/accession/accession/internal/scanner"
)

// finding is one line of the doctor's report.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // what to install or do
}

func newDoctorCommand(app *App) *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell which engines, versions and signatures are here, and what is missing",
		Args:  positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.load(cmd.Flags()); err != nil {
				return err
			}
			if s.Data == "" {
				s.Data = "." // only the engines are looked at
			}
			if err := s.validate(); err != nil {
				return err
			}
			found := examine(cmd.Context(), s)
			if asJSON {
				b, err := json.Marshal(found)
				if err == nil {
					err = app.printData(b)
				}
				if err != nil {
					return err
				}
			} else {
				app.printFindings(found)
			}
			for _, f := range found {
				if !f.OK {
					return errors.New("something is missing; see the lines marked with ✗")
				}
			}
			return nil
		},
	}
	s.flags(cmd.Flags(), app.Getenv)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
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
		found = append(found, finding(f))
	}
	return found
}

func examineClamAV(i scanner.Inspection, maxAge time.Duration) []finding {
	program := finding{"clamd", i.Binary.Advice == "", i.Binary.Path + " " + i.Binary.Version, i.Binary.Advice}
	if i.Binary.Path == "" {
		program.Detail = "not found"
	}
	signatures := finding{"signatures", i.Database.Usable, i.Database.Folder, i.Database.Advice}
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
	f := finding{"scratch", true, "in memory, below " + s.Folder, s.Advice}
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
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range found {
		mark := "✓"
		if !f.OK {
			mark = "✗"
		}
		fmt.Fprintf(table, "%s %s\t%s\n", mark, f.Name, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(table, "  \t→ %s\n", f.Remedy)
		}
	}
	table.Flush()
}
