package extract

import "time"

// Limits bound one extraction. A field that is zero takes the default named beside it.
type Limits struct {
	InputBytes    int64         // bytes of a PDF or picture, which its worker holds in memory; larger is refused (512 MiB)
	Pages         int           // pages read; the rest is left out (2,000)
	OCRPages      int           // pages recognised by OCR; the rest keeps its text layer (300)
	PagePixels    int64         // pixels of one picture, checked before decoding (100 million)
	ExpandedBytes int64         // bytes that the compressed parts of one document may grow to (512 MiB)
	TextBytes     int64         // bytes of UTF-8 text in all; the rest is left out (8 MiB)
	WorkerMemory  int64         // bytes of address space of an extraction worker (4 GiB)
	WorkerCPU     time.Duration // CPU time of an extraction worker, rounded up to seconds (10 min)
	OCRMemory     int64         // bytes of address space of tesseract (2 GiB)
	OCRCPU        time.Duration // CPU time of tesseract for one page, rounded up to seconds (2 min)
}

// A page of OCR text is bounded on its own: the densest newspaper page stays far below it.
const ocrPageTextBytes = 128 << 10

func (l Limits) withDefaults() Limits {
	return Limits{
		InputBytes:    or(l.InputBytes, 512<<20),
		Pages:         or(l.Pages, 2000),
		OCRPages:      or(l.OCRPages, 300),
		PagePixels:    or(l.PagePixels, 100_000_000),
		ExpandedBytes: or(l.ExpandedBytes, 512<<20),
		TextBytes:     or(l.TextBytes, 8<<20),
		WorkerMemory:  or(l.WorkerMemory, 4<<30),
		WorkerCPU:     or(l.WorkerCPU, 10*time.Minute),
		OCRMemory:     or(l.OCRMemory, 2<<30),
		OCRCPU:        or(l.OCRCPU, 2*time.Minute),
	}
}

func or[T int | int64 | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}
