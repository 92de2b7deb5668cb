package extract

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

// A worker that was taken over can send anything. The parent must refuse what no honest worker sends.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	type frames func(w *bytes.Buffer)
	frame := func(kind byte, payload any) frames {
		return func(w *bytes.Buffer) { writeFrame(w, kind, payload) }
	}
	kind := frame(frameType, typeFrame{Media: "text/plain"})
	one := frame(frameCount, countFrame{Pages: 1})
	end := frame(frameEnd, endFrame{})
	for name, c := range map[string]struct {
		sent []frames
		want error
	}{
		"honest":                     {[]frames{kind, one, frame(framePage, pageFrame{Number: 1}), end}, nil},
		"no count":                   {[]frames{kind, frame(framePage, pageFrame{Number: 1})}, errFrame},
		"no pages":                   {[]frames{kind, frame(frameCount, countFrame{})}, errFrame},
		"negative count":             {[]frames{kind, frame(frameCount, countFrame{Pages: -1})}, errFrame},
		"count beyond belief":        {[]frames{kind, frame(frameCount, countFrame{Pages: 1 << 40})}, errFrame},
		"counts beyond belief":       {[]frames{kind, one, frame(frameCount, countFrame{Pages: maxCount})}, errFrame},
		"no type":                    {[]frames{one}, errFrame},
		"two types":                  {[]frames{kind, kind}, errFrame},
		"type of any text":           {[]frames{frame(frameType, typeFrame{Media: "buy now"})}, errFrame},
		"page zero":                  {[]frames{kind, one, frame(framePage, pageFrame{Number: 0})}, errFrame},
		"page out of order":          {[]frames{kind, frame(frameCount, countFrame{Pages: 3}), frame(framePage, pageFrame{Number: 2})}, errFrame},
		"page beyond the count":      {[]frames{kind, one, frame(framePage, pageFrame{Number: 1}), frame(framePage, pageFrame{Number: 2})}, errFrame},
		"nothing sent":               {[]frames{kind, end}, errFrame},
		"pages missing":              {[]frames{kind, one, end}, errFrame},
		"pages missing, and said so": {[]frames{kind, one, frame(frameEnd, endFrame{Truncated: true})}, nil},
		"picture without pixels":     {[]frames{kind, one, frame(framePicture, pictureFrame{Number: 1})}, errFrame},
		"picture of too many":        {[]frames{kind, one, frame(framePicture, pictureFrame{Number: 1, Width: 1 << 19, Height: 1 << 19})}, errFrame},
		"picture that overflows":     {[]frames{kind, one, frame(framePicture, pictureFrame{Number: 1, Width: 1 << 62, Height: 4})}, errFrame},
		"picture of absurd density":  {[]frames{kind, one, frame(framePicture, pictureFrame{Number: 1, Width: 1, Height: 1, DPI: -300})}, errFrame},
		"unknown refusal":            {[]frames{frame(frameRefusal, refusalFrame{Code: "unheard_of"})}, errFrame},
		"unknown kind":               {[]frames{kind, one, frame('?', nil)}, errFrame},
		"no JSON":                    {[]frames{kind, one, func(w *bytes.Buffer) { w.WriteString("P\x00\x00\x00\x02{[") }}, errFrame},
		"frame of 4 GiB":             {[]frames{kind, one, func(w *bytes.Buffer) { w.WriteString("P\xff\xff\xff\xff") }}, errFrame},
		"nothing":                    {nil, errEnded},
		"cut off":                    {[]frames{kind, one, func(w *bytes.Buffer) { w.WriteString("P\x00\x00\x00\x09{") }}, errEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent bytes.Buffer
			for _, f := range c.sent {
				f(&sent)
			}
			collector := newCollector(within(t), extractor(t), nil)
			err := collector.finish(collector.read(newConversation(within(t), &sent, io.Discard, nil, 0)))
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("want %v, got %v", c.want, err)
			}
		})
	}
}

func TestForgedText(t *testing.T) {
	t.Parallel()
	var sent bytes.Buffer
	writeFrame(&sent, frameType, typeFrame{Media: "text/plain"})
	writeFrame(&sent, frameCount, countFrame{Pages: 1})
	forged := `{"number":1,"text":"a` + "\xff\xfe" + `\u0000\u001b\ud800b"}`
	sent.WriteString("P\x00\x00\x00" + string(rune(len(forged))) + forged)
	writeFrame(&sent, frameEnd, endFrame{})
	collector := newCollector(within(t), extractor(t), nil)
	if err := collector.finish(collector.read(newConversation(within(t), &sent, io.Discard, nil, 0))); err != nil {
		t.Fatal(err)
	}
	if got := collector.document().Pages[0].Text; got != "a\uFFFD\uFFFD\uFFFDb" {
		t.Errorf("got %q", got)
	}
}

// Hidden runs are a worker's word too: those that do not lie in the text are dropped.
func TestForgedHiddenRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ runs, want []page.Run }{
		"honest":        {[]page.Run{{Start: 0, End: 3, Class: page.HiddenTiny}}, []page.Run{{Start: 0, End: 3, Class: page.HiddenTiny}}},
		"moved":         {[]page.Run{{Start: 5, End: 8, Class: page.HiddenTiny}}, []page.Run{{Start: 4, End: 7, Class: page.HiddenTiny}}},
		"beyond":        {[]page.Run{{Start: 5, End: 99, Class: page.HiddenTiny}}, nil},
		"backwards":     {[]page.Run{{Start: 3, End: 1, Class: page.HiddenTiny}}, nil},
		"negative":      {[]page.Run{{Start: -3, End: 1, Class: page.HiddenTiny}}, nil},
		"overlapping":   {[]page.Run{{Start: 0, End: 3, Class: page.HiddenTiny}, {Start: 2, End: 4, Class: page.HiddenTiny}}, []page.Run{{Start: 0, End: 3, Class: page.HiddenTiny}}},
		"unknown class": {[]page.Run{{Start: 0, End: 3, Class: "buy_now"}}, nil},
	} {
		got := plainPage(page.Page{Text: "one\r\ntwo", Hidden: c.runs})
		if got.Text != "one\ntwo" || !slices.Equal(got.Hidden, c.want) {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}

func TestTextLimitInPageOrder(t *testing.T) {
	t.Parallel()
	var pages []pdfPageSource
	for range 5 {
		pages = append(pages, textPage(strings.Repeat("x", 60)))
	}
	e := extractor(t, func(config *Config) { config.Limits.TextBytes = 150 })
	doc := extract(t, e, makePDF(pages...), "application/pdf")
	if !doc.Truncated || len(doc.Pages) != 3 || len(doc.Pages[2].Text) >= 60 || doc.PageCount != 5 {
		t.Errorf("document: %+v", doc)
	}
}
