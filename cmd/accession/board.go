package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/accession/accession/client"
)

// board tells how several uploads get on. On a terminal each that is under way has a line, drawn below the lines that stay;
// elsewhere each step is a line of its own. Its methods may be called from several goroutines.
type board struct {
	app   *App
	out   io.Writer // what is drawn, and the lines about single steps
	live  bool
	quiet bool
	now   func() time.Time

	mu      sync.Mutex
	rows    []*boardRow // under way
	foot    string
	drawn   int // lines below those that stay
	redrawn time.Time
}

// boardRow is one upload that is under way.
type boardRow struct {
	board      *board
	name, text string

	phase string
	began time.Time
	base  int64
}

// redrawEvery bounds what a terminal has to draw.
const redrawEvery = 100 * time.Millisecond

func newBoard(app *App, quiet bool) *board {
	return &board{
		app: app, out: app.Stderr, quiet: quiet, now: time.Now,
		live: app.StderrIsTerminal && !quiet && app.Getenv("TERM") != "dumb",
	}
}

// row adds a line for name.
func (b *board) row(name string) *boardRow {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &boardRow{board: b, name: oneLine(name)}
	b.rows = append(b.rows, r)
	return r
}

// end takes the row away.
func (r *boardRow) end() {
	b := r.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.rows {
		if b.rows[i] == r {
			b.rows = append(b.rows[:i], b.rows[i+1:]...)
			break
		}
	}
	b.draw(true)
}

// set changes what a terminal shows of the row; what comes often need not be drawn each time.
func (r *boardRow) set(text string, often bool) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	changed := r.text != text
	r.text = oneLine(text)
	if changed {
		r.board.draw(!often)
	}
}

// step is something to know of the row: a line that stays where there is no terminal.
func (r *boardRow) step(text string) {
	if !r.board.live {
		r.say(text)
	}
	r.set(text, false)
}

// say is a line that stays, about the row.
func (r *boardRow) say(text string) {
	if !r.board.quiet {
		r.board.stay(r.board.out, r.name+": "+oneLine(text))
	}
}

// progress shows how much of the file is sent, and how fast.
func (r *boardRow) progress(p client.Progress) {
	if p.Phase != r.phase {
		r.phase, r.began, r.base = p.Phase, r.board.now(), p.Bytes
	}
	verb := map[string]string{client.PhaseVerify: "comparing", client.PhaseSend: "sending", client.PhaseComplete: "completing"}[p.Phase]
	rate := ""
	if took := r.board.now().Sub(r.began).Seconds(); took > 0.5 && p.Bytes > r.base {
		rate = bytesText(int64(float64(p.Bytes-r.base)/took)) + "/s"
	}
	r.set(fmt.Sprintf("%-10s %s %3d %%  %s", verb, drawnBar(p.Bytes, p.Total), percent(p.Bytes, p.Total), rate), true)
}

// gates shows which gate is at work.
func (r *boardRow) gates(status *client.UploadStatus) {
	passed, at := 0, ""
	for _, gate := range status.Gates {
		if gate.State == client.GatePassed {
			passed++
		} else if at == "" {
			at = gate.Name
		}
	}
	r.set(fmt.Sprintf("%-10s %s %d of %d  %s", "gates", drawnBar(int64(passed), int64(len(status.Gates))), passed, len(status.Gates), at), false)
}

func percent(done, total int64) int64 {
	if total < 1 {
		return 0
	}
	return min(done, total) * 100 / total
}

func drawnBar(done, total int64) string {
	const width = 20
	full := int(percent(done, total)) * width / 100
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// stay prints a line that stays, to out.
func (b *board) stay(out io.Writer, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	fmt.Fprintln(out, line)
	b.draw(true)
}

// footer is the line below the rows.
func (b *board) footer(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.foot = text
	b.draw(false)
}

// close takes away what is drawn.
func (b *board) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.live = false
}

func (b *board) erase() {
	if b.drawn > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\r\x1b[J", b.drawn)
		b.drawn = 0
	}
}

// draw shows the rows anew, at most every redrawEvery unless they have to be. Lines are cut by the terminal, not wrapped.
func (b *board) draw(must bool) {
	if !b.live || !must && b.now().Sub(b.redrawn) < redrawEvery {
		return
	}
	b.redrawn = b.now()
	columns, lines := b.app.screen()
	width := 0
	for _, r := range b.rows {
		width = max(width, utf8.RuneCountInString(r.name))
	}
	width = min(width, max(12, columns/3))
	var text strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\r\x1b[J", b.drawn)
	}
	text.WriteString("\x1b[?7l")
	shown := min(len(b.rows), max(1, lines-3))
	for _, r := range b.rows[:shown] {
		fmt.Fprintf(&text, "%-*s  %s\n", width, bothEnds(r.name, width), r.text)
	}
	b.drawn = shown
	if foot := joined(b.foot, more(len(b.rows)-shown)); foot != "" && len(b.rows) > 0 {
		fmt.Fprintln(&text, b.app.paint(true, faint, foot))
		b.drawn++
	}
	text.WriteString("\x1b[?7h")
	fmt.Fprint(b.out, text.String())
}

func more(n int) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf("%d more not shown", n)
}

// bothEnds keeps both ends of a name, which tell files apart.
func bothEnds(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width || width < 5 {
		return name
	}
	end := (width - 1) / 2
	return string(runes[:width-1-end]) + "…" + string(runes[len(runes)-end:])
}

// screen is how large the terminal is.
func (a *App) screen() (columns, lines int) {
	if a.Screen == nil {
		return 80, 24
	}
	return a.Screen()
}
