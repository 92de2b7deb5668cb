package office

import "slices"

// span is a range of columns, both ends in it, from 1.
type span struct{ from, to int }

// spans are columns of a sheet.
type spans struct {
	list    []span
	settled bool
}

// add takes a span, unless there are absurdly many.
func (s *spans) add(one span) {
	if len(s.list) < maxSpans {
		s.list, s.settled = append(s.list, one), false
	}
}

// has tells that a column is in one of them.
func (s *spans) has(column int) bool {
	if !s.settled {
		s.settle()
	}
	i, found := slices.BinarySearchFunc(s.list, column, func(one span, column int) int { return one.from - column })
	return found || i > 0 && column <= s.list[i-1].to
}

// settle sorts the spans and makes one of those that overlap.
func (s *spans) settle() {
	slices.SortFunc(s.list, func(a, b span) int { return a.from - b.from })
	merged := s.list[:0]
	for _, one := range s.list {
		if last := len(merged) - 1; last >= 0 && one.from <= merged[last].to {
			merged[last].to = max(merged[last].to, one.to)
		} else {
			merged = append(merged, one)
		}
	}
	s.list, s.settled = merged, true
}

// columnStyles are the styles that cells of a column take when they name none, in the columns' order.
type columnStyles []columnStyle

type columnStyle struct {
	span
	name string
}

func (s columnStyles) name(column int) string {
	i, found := slices.BinarySearchFunc(s, column, func(one columnStyle, column int) int { return one.from - column })
	if !found {
		i--
	}
	if i < 0 || column > s[i].to {
		return ""
	}
	return s[i].name
}
