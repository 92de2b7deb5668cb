package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/accession/accession/client"
)

// bar draws what an uploader reports: on a terminal a progress bar with rate and time left, elsewhere nothing. It never
// goes back and never passes 100 %, though a part may have to be sent twice.
type bar struct {
	out   io.Writer
	draw  bool
	label string
	now   func() time.Time

	drawn   *progressbar.ProgressBar
	phase   string
	base    int64 // where this phase began
	highest int64
	began   time.Time
	sent    int64
	took    time.Duration
}

func newBar(out io.Writer, draw bool, label string) *bar {
	return &bar{out: out, draw: draw, label: oneLine(label), now: time.Now}
}

// update takes one report. Rate and time left are those of the bytes still to be sent: a resumed upload's bar is of the rest.
func (b *bar) update(progress client.Progress) {
	if progress.Phase != b.phase {
		b.begin(progress)
	}
	done := min(progress.Bytes, progress.Total)
	if done <= b.highest {
		return
	}
	if b.drawn != nil {
		_ = b.drawn.Set64(done - b.base) // a terminal that is gone is no reason to stop
	}
	b.highest = done
	if progress.Phase == client.PhaseSend {
		b.sent = done - b.base
	}
}

func (b *bar) begin(progress client.Progress) {
	if b.phase == client.PhaseSend {
		b.took = b.now().Sub(b.began)
	}
	b.close()
	b.phase, b.began, b.base = progress.Phase, b.now(), 0
	verb := "sending"
	switch progress.Phase {
	case client.PhaseComplete:
		b.highest = progress.Total
		return
	case client.PhaseVerify:
		verb = "comparing"
	case client.PhaseSend:
		// Comparing ended where sending begins.
		b.base = b.highest
		if b.base > 0 {
			verb = "sending the rest of"
		}
	}
	if b.draw && progress.Total > b.base {
		b.drawn = progressbar.NewOptions64(progress.Total-b.base,
			progressbar.OptionSetWriter(b.out),
			progressbar.OptionSetDescription(verb+" "+b.label),
			progressbar.OptionSetWidth(24),
			progressbar.OptionShowBytes(true),
			progressbar.OptionUseIECUnits(true),
			progressbar.OptionShowTotalBytes(true),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true),
		)
	}
}

// interrupt leaves the bar as it stands and ends its line, before another line is printed.
func (b *bar) interrupt() {
	if b.drawn != nil {
		fmt.Fprintln(b.out)
	}
}

// close ends the bar's line.
func (b *bar) close() {
	b.interrupt()
	b.drawn = nil
}

// summary says how much was sent and how fast; empty where nothing was.
func (b *bar) summary() string {
	if b.sent == 0 {
		return ""
	}
	rate := float64(b.sent) / max(b.took.Seconds(), 0.001)
	return fmt.Sprintf("sent %s in %s (%s/s)", bytesText(b.sent), seconds(b.took), bytesText(int64(rate)))
}
