package main

import (
	"context"
	"fmt"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/scanner"
	"github.com/accession/accession/internal/upkeep"
)

// here is what this process tells an operator of itself and its engines.
func (svc *service) here() upkeep.Installation {
	var roles []string
	for _, role := range []string{roleAPI, roleWorker} {
		if svc.settings.has(role) {
			roles = append(roles, role)
		}
	}
	return upkeep.Installation{
		Process: custody.ProcessState{Version: programVersion(), Roles: roles, StartedAt: custody.Now()},
		Scanner: func(ctx context.Context) custody.ScannerState {
			engine, err := svc.scanner.Health(ctx)
			return scannerState(engine, err, svc.settings.SignaturesMaxAge)
		},
	}
}

// scannerState says in a sentence how the scanner is. The reason of an error stays in the log: it has addresses and paths.
func scannerState(engine scanner.Engine, err error, maxAge time.Duration) custody.ScannerState {
	if err != nil {
		return custody.ScannerState{Sentence: "The scanner does not answer, or does not prove that it finds what it must: uploads wait at the malware_scan gate. " +
			"It may still be loading its signatures; if this lasts, accession doctor and the service's log say why."}
	}
	s := custody.ScannerState{
		OK: true, Engine: engine.Name, EngineVersion: engine.Version, SignatureVersion: engine.SignatureVersion, SignatureDate: engine.SignatureDate,
	}
	works := fmt.Sprintf("%s %s finds what it must", engine.Name, engine.Version)
	switch reason := outdated(engine.SignatureDate, maxAge); {
	case maxAge > 0 && reason != "":
		s.OK, s.Sentence = false, works+", but "+reason+". Until then uploads wait at the malware_scan gate."
	case !engine.FullDatabase:
		s.Sentence = works + ", but has no full signature database: it protects from next to nothing. Run freshclam."
	case engine.SignatureDate.IsZero():
		s.Sentence = works + "; how old its signatures are is not known."
	case time.Since(engine.SignatureDate) > oldSignatures:
		s.Sentence = fmt.Sprintf("%s, but its signatures are %d days old: run freshclam.", works, int(time.Since(engine.SignatureDate)/(24*time.Hour)))
	default:
		s.Sentence = fmt.Sprintf("%s; its signatures are of %s.", works, engine.SignatureDate.UTC().Format(time.DateOnly))
	}
	return s
}
