package extract

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// A worker that was taken over can send anything. The parent must refuse what no honest worker sends.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	type frames func(w *bytes.Buffer)
	frame := func(kind byte, payload any) frames {
		return func(w *bytes.Buffer) { writeFrame(w, kind, payload) }
	}
	one := frame(frameCount, countFrame{Pages: 1})
	end := frame(frameEnd, endFrame{})
	for name, c := range map[string]struct {
		sent []frames
		want error
	}{
		"honest":                     {[]frames{one, frame(framePage, pageFrame{Number: 1}), end}, nil},
		"no count":                   {[]frames{frame(framePage, pageFrame{Number: 1})}, errFrame},
		"no pages":                   {[]frames{frame(frameCount, countFrame{})}, errFrame},
		"negative count":             {[]frames{frame(frameCount, countFrame{Pages: -1})}, errFrame},
		"count beyond belief":        {[]frames{frame(frameCount, countFrame{Pages: 1 << 40})}, errFrame},
		"two counts":                 {[]frames{one, one}, errFrame},
		"page zero":                  {[]frames{one, frame(framePage, pageFrame{Number: 0})}, errFrame},
		"page out of order":          {[]frames{frame(frameCount, countFrame{Pages: 3}), frame(framePage, pageFrame{Number: 2})}, errFrame},
		"page beyond the count":      {[]frames{one, frame(framePage, pageFrame{Number: 1}), frame(framePage, pageFrame{Number: 2})}, errFrame},
		"negative hidden text":       {[]frames{one, frame(framePage, pageFrame{Number: 1, Hidden: -1})}, errFrame},
		"pages missing":              {[]frames{one, end}, errFrame},
		"pages missing, and said so": {[]frames{one, frame(frameEnd, endFrame{Truncated: true})}, nil},
		"picture without pixels":     {[]frames{one, frame(framePicture, pictureFrame{Number: 1})}, errFrame},
		"picture of too many":        {[]frames{one, frame(framePicture, pictureFrame{Number: 1, Width: 1 << 19, Height: 1 << 19})}, errFrame},
		"picture that overflows":     {[]frames{one, frame(framePicture, pictureFrame{Number: 1, Width: 1 << 62, Height: 4})}, errFrame},
		"picture of absurd density":  {[]frames{one, frame(framePicture, pictureFrame{Number: 1, Width: 1, Height: 1, DPI: -300})}, errFrame},
		"unknown refusal":            {[]frames{frame(frameRefusal, refusalFrame{Code: "unheard_of"})}, errFrame},
		"unknown kind":               {[]frames{one, frame('?', nil)}, errFrame},
		"no JSON":                    {[]frames{one, func(w *bytes.Buffer) { w.WriteString("P\x00\x00\x00\x02{[") }}, errFrame},
		"frame of 4 GiB":             {[]frames{one, func(w *bytes.Buffer) { w.WriteString("P\xff\xff\xff\xff") }}, errFrame},
		"nothing":                    {nil, errEnded},
		"cut off":                    {[]frames{one, func(w *bytes.Buffer) { w.WriteString("P\x00\x00\x00\x09{") }}, errEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent bytes.Buffer
			for _, f := range c.sent {
				f(&sent)
			}
			collector := newCollector(within(t), extractor(t), nil)
			err := collector.read(&sent)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("want %v, got %v", c.want, err)
			}
			if err := collector.finish(err); err != nil {
				t.Errorf("OCR: %v", err)
			}
		})
	}
}

func TestForgedText(t *testing.T) {
	t.Parallel()
	var sent bytes.Buffer
	writeFrame(&sent, frameCount, countFrame{Pages: 1})
	forged := `{"number":1,"text":"a` + "\xff\xfe" + `\u0000\u001b\ud800b"}`
	sent.WriteString("P\x00\x00\x00" + string(rune(len(forged))) + forged)
	writeFrame(&sent, frameEnd, endFrame{})
	collector := newCollector(within(t), extractor(t), nil)
	if err := collector.read(&sent); err != nil {
		t.Fatal(err)
	}
	collector.finish(nil)
	if got := collector.document().Pages[0].Text; got != "a\uFFFD\uFFFD\uFFFDb" {
		t.Errorf("got %q", got)
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
