package extract

import (
	"context"
	"fmt"
	"strings"
)

// Finding is one line for an operator: what extraction needs, and whether it is here.
type Finding struct {
	Name   string // e.g. "tesseract", "landlock"
	OK     bool
	Detail string // what was found: path, version, languages, level
	Remedy string // what to install or do; where OK, what would be better
}

// Inspect looks for what this Extractor needs, for "accession doctor". It reads no document. The findings come in a fixed order;
// Inspect itself does not fail: what cannot be found out is a finding that is not OK.
func (e *Extractor) Inspect(ctx context.Context) []Finding {
	return []Finding{e.inspectTesseract(ctx), e.inspectLanguages(ctx), e.inspectLandlock(), e.inspectSeccomp(), e.inspectLibreOffice(), e.inspectReader(ctx)}
}

func (e *Extractor) inspectTesseract(ctx context.Context) Finding {
	f := Finding{Name: "tesseract"}
	program, err := findTesseract(e.config.Tesseract)
	if err != nil {
		f.Detail, f.Remedy = "not found", "apt-get install tesseract-ocr"
		return f
	}
	version, err := run(ctx, program, "--version")
	if err != nil {
		f.Detail, f.Remedy = program+": does not run", "apt-get install --reinstall tesseract-ocr"
		return f
	}
	first, _, _ := strings.Cut(version, "\n")
	f.OK, f.Detail = true, fmt.Sprintf("%s (%s)", strings.TrimSpace(first), program)
	return f
}

func (e *Extractor) inspectLanguages(ctx context.Context) Finding {
	f := Finding{Name: "tesseract languages"}
	var engine engine
	program, err := engine.find(ctx, e.config.Tesseract, e.config.Languages)
	if err != nil {
		f.Detail = err.Error()
		_, f.Remedy, _ = strings.Cut(f.Detail, "apt-get ")
		f.Remedy = "apt-get " + f.Remedy
		return f
	}
	have, err := tesseractLanguages(ctx, program)
	if err != nil {
		f.Detail, f.Remedy = "unknown", "apt-get install --reinstall tesseract-ocr"
		return f
	}
	f.OK, f.Detail = true, strings.Join(have, " ")
	return f
}

// MissingWalls are the walls of the cage that this kernel lacks: what each is called, and what a worker can do without it.
func MissingWalls() []string {
	var missing []string
	if landlockABI() == 0 {
		missing = append(missing, "landlock: a worker that runs another program can read files")
	}
	if !hasSeccomp() {
		missing = append(missing, "seccomp: workers can reach the network and start processes")
	}
	return missing
}

func (e *Extractor) inspectLandlock() Finding {
	f := Finding{Name: "landlock", Detail: "not in this kernel"}
	if abi := landlockABI(); abi > 0 {
		f.OK, f.Detail = true, fmt.Sprintf("ABI %d", abi)
		return f
	}
	return e.missingWall(f, "run Linux 5.13 or newer with landlock in its lsm= list (in a container: a seccomp profile that allows landlock_*)", "a worker that runs another program can read files")
}

func (e *Extractor) inspectSeccomp() Finding {
	f := Finding{Name: "seccomp", Detail: "not in this kernel"}
	if hasSeccomp() {
		f.OK, f.Detail = true, "filters supported"
		return f
	}
	return e.missingWall(f, "run a kernel with CONFIG_SECCOMP_FILTER", "workers can reach the network and start processes")
}

// missingWall stays missing where the operator allows that; then it is what they chose.
func (e *Extractor) missingWall(f Finding, remedy, risk string) Finding {
	f.Remedy = remedy + "; or --missing-walls allow, and accept that " + risk
	if e.config.AllowMissingWalls {
		f.OK, f.Detail, f.Remedy = true, f.Detail+", and allowed to be missing: "+risk, remedy
	}
	return f
}

// inspectReader starts a worker as a document would, so it proves the cage and the PDF engine together.
func (e *Extractor) inspectReader(ctx context.Context) Finding {
	f := Finding{Name: "extraction worker"}
	if err := e.Warm(ctx); err != nil {
		f.Detail, f.Remedy = err.Error(), "see the findings above; the cache folder must be writable by the service"
		return f
	}
	f.OK, f.Detail = true, "locks itself down and loads pdfium"
	if len(MissingWalls()) > 0 {
		f.Detail = "loads pdfium; locks itself down as far as this kernel can"
	}
	return f
}

// inspectLibreOffice is never a fault: without it a few old formats are refused, and say so.
func (e *Extractor) inspectLibreOffice() Finding {
	f := Finding{Name: "LibreOffice", OK: true, Detail: "not found (optional: DOC, XLS and PPT are refused)"}
	if program := findLibreOffice(e.config.LibreOffice); program != "" {
		f.Detail = program + " (reads DOC, XLS and PPT)"
		if err := memoryFileSystem(); err != nil {
			f.Detail = program + ", but " + memoryFolder + " is no memory file system (optional: DOC, XLS and PPT are not read)"
		}
	}
	return f
}
