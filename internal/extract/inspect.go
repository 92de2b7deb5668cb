package extract

import (
	"context"
	"fmt"
	"strings"

	seccomp "github.com/elastic/go-seccomp-bpf"
)

// Finding is one line for an operator: what extraction needs, and whether it is here.
type Finding struct {
	Name   string // e.g. "tesseract", "landlock"
	OK     bool
	Detail string // what was found: path, version, languages, level
	Remedy string // what to install or do; empty when OK
}

// Inspect looks for what this Extractor needs, for "accession doctor". It reads no document. The findings come in a fixed order;
// Inspect itself does not fail: what cannot be found out is a finding that is not OK.
func (e *Extractor) Inspect(ctx context.Context) []Finding {
	return []Finding{e.inspectTesseract(ctx), e.inspectLanguages(ctx), inspectLandlock(), inspectSeccomp(), e.inspectReader(ctx)}
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

func inspectLandlock() Finding {
	f := Finding{Name: "landlock", Detail: "not in this kernel"}
	if abi := landlockABI(); abi > 0 {
		f.OK, f.Detail = true, fmt.Sprintf("ABI %d", abi)
		return f
	}
	f.Remedy = "run Linux 5.13 or newer with landlock in its lsm= list (in a container: a seccomp profile that allows landlock_*); or allow missing walls and accept that workers can read files"
	return f
}

func inspectSeccomp() Finding {
	f := Finding{Name: "seccomp", Detail: "not in this kernel"}
	if seccomp.Supported() {
		f.OK, f.Detail = true, "filters supported"
		return f
	}
	f.Remedy = "run a kernel with CONFIG_SECCOMP_FILTER; or allow missing walls and accept that workers can reach the network"
	return f
}

// inspectReader starts a worker as a document would, so it proves the cage and the PDF engine together.
func (e *Extractor) inspectReader(ctx context.Context) Finding {
	f := Finding{Name: "extraction worker"}
	if err := e.Warm(ctx); err != nil {
		f.Detail, f.Remedy = err.Error(), "remedy the findings above; the cache folder must be writable by the service"
		return f
	}
	f.OK, f.Detail = true, "locks itself down and loads pdfium"
	return f
}
