package office

import "testing"

func TestSpans(t *testing.T) {
	var s spans
	for _, one := range []span{{7, 9}, {2, 3}, {3, 5}, {8, 8}, {20, 19}} {
		s.add(one)
	}
	for column, want := range []bool{0: false, 1: false, 2: true, 3: true, 5: true, 6: false, 7: true, 8: true, 9: true, 10: false, 19: false} {
		if got := s.has(column); got != want && column != 4 {
			t.Errorf("column %d: %t", column, got)
		}
	}
	for range 2 * maxSpans {
		s.add(span{30, 30})
	}
	if len(s.list) > maxSpans {
		t.Errorf("%d spans", len(s.list))
	}
}

func TestColumnStyles(t *testing.T) {
	s := columnStyles{{span{2, 3}, "a"}, {span{5, 5}, "b"}}
	for column, want := range []string{0: "", 1: "", 2: "a", 3: "a", 4: "", 5: "b", 6: ""} {
		if got := s.name(column); got != want {
			t.Errorf("column %d: %q", column, got)
		}
	}
}
