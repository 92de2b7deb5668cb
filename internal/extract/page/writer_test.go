package page

import (
	"reflect"
	"testing"
)

func TestWriterMergesHiddenRunsAndKeepsCharactersWhole(t *testing.T) {
	w := NewWriter(12)
	w.Write("seen ", "")
	w.Write("hid", HiddenTiny)
	w.Write("den", HiddenTiny)
	w.Write("né", "") // two bytes of room for one and a half: é is left out
	w.Write("never", "")
	want := Page{Text: "seen hiddenn", Hidden: []Run{{5, 11, HiddenTiny}}}
	if got := w.Page(); !reflect.DeepEqual(got, want) || !w.Full() {
		t.Errorf("page %+v, full %t; want %+v, full", got, w.Full(), want)
	}
}

func TestWriterBreaksOnce(t *testing.T) {
	w := NewWriter(100)
	w.Paragraph()
	w.Write("a", "")
	w.Break()
	w.Break()
	w.Write("b", "")
	w.Paragraph()
	w.Paragraph()
	w.Write("c", "")
	if got := w.Page().Text; got != "a\nb\n\nc" {
		t.Errorf("text %q", got)
	}
}
