package office

const (
	stringBytes = 128 << 20 // shared strings of one workbook that are remembered
	maxStrings  = 4 << 20
	maxOddRuns  = 100_000 // shared strings with runs of their own look
)

// sharedStrings are the texts of a workbook's cells, one behind the other.
type sharedStrings struct {
	styles *cellStyles
	all    []byte
	ends   []uint32
	runs   map[int][]stringRun // of the strings where a run says how it looks
	run    look
	cut    bool // not all is remembered
}

type stringRun struct {
	end  int // in the string
	look look
}

func readSharedStrings(c *container, rels *relations, styles *cellStyles) (*sharedStrings, error) {
	s := &sharedStrings{styles: styles, runs: map[int][]stringRun{}}
	for _, part := range rels.of(c, "sharedStrings") {
		if err := optional(c, part, "sst", s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sharedStrings) start(e *element) error {
	switch {
	case e.name == "si", e.name == "r":
		s.run = plain
	case e.name == "rPh":
		return errSkip
	case e.parent() == "rPr":
		s.styles.font(e, &s.run)
	}
	return nil
}

func (s *sharedStrings) begin() int {
	if n := len(s.ends); n > 0 {
		return int(s.ends[n-1])
	}
	return 0
}

func (s *sharedStrings) text(text string, e *element) error {
	if e.name != "t" {
		return nil
	}
	if len(s.all)+len(text) > stringBytes {
		s.cut = true
		return errFull
	}
	s.all = append(s.all, text...)
	n := len(s.ends)
	if runs := s.runs[n]; runs != nil || s.run != plain && len(s.runs) < maxOddRuns {
		if len(runs) == maxSpans {
			runs = runs[:len(runs)-1]
		}
		if runs == nil && len(s.all)-len(text) > s.begin() {
			runs = append(runs, stringRun{len(s.all) - len(text) - s.begin(), plain})
		}
		s.runs[n] = append(runs, stringRun{len(s.all) - s.begin(), s.run})
	}
	return nil
}

func (s *sharedStrings) end(e *element) error {
	if e.name != "si" {
		return nil
	}
	if len(s.ends) == maxStrings {
		s.cut = true
		return errFull
	}
	s.ends = append(s.ends, uint32(len(s.all)))
	return nil
}

// get is a string, in the pieces that it looks differently in; ok is false when there is no such string.
func (s *sharedStrings) get(i int, cell look) (pieces []piece, ok bool) {
	if i < 0 || i >= len(s.ends) {
		return nil, false
	}
	from := 0
	if i > 0 {
		from = int(s.ends[i-1])
	}
	text := s.all[from:s.ends[i]]
	at := 0
	for _, run := range s.runs[i] {
		pieces = append(pieces, piece{text: string(text[at:run.end]), look: run.look.over(cell)})
		at = run.end
	}
	if at < len(text) {
		pieces = append(pieces, piece{text: string(text[at:]), look: cell})
	}
	return pieces, true
}
