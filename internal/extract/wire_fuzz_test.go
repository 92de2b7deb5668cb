package extract

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/page"
)

// fuzzLimits are small, so that a worker that exceeds them is met soon.
var fuzzLimits = Limits{Pages: 3, OCRPages: 2, TextBytes: 512, PagePixels: 64 << 10, ExpandedBytes: 1 << 20, InputBytes: 1 << 20}

// deafExtractor hears what workers say and can start nothing by itself.
func deafExtractor() *Extractor {
	return New(Config{Executable: "/nonexistent", Tesseract: "/nonexistent", LibreOffice: "/nonexistent", Limits: fuzzLimits})
}

// frames are the bytes of frames, as pairs of a kind and a payload.
func frames(pairs ...any) []byte {
	var b bytes.Buffer
	for i := 0; i < len(pairs); i += 2 {
		if raw, is := pairs[i+1].([]byte); is {
			_ = writeRaw(&b, pairs[i].(byte), raw)
		} else {
			_ = writeFrame(&b, pairs[i].(byte), pairs[i+1])
		}
	}
	return b.Bytes()
}

func addTalk(f *testing.F) {
	kind, end := typeFrame{Media: "text/plain", Declared: "text/plain"}, endFrame{}
	for _, talk := range [][]byte{
		frames(byte(frameType), kind, byte(frameCount), countFrame{Pages: 2}, byte(framePage), pageFrame{Number: 1, Text: "one\r\ntwo", Hidden: []page.Run{{Start: 5, End: 8, Class: page.HiddenTiny}}},
			byte(framePage), pageFrame{Number: 2}, byte(frameEnd), end),
		frames(byte(frameType), kind, byte(frameCount), countFrame{Pages: 9}, byte(frameEnd), endFrame{Truncated: true, Members: 1, LeftOut: 2}),
		frames(byte(frameRead), readFrame{At: 0, N: 5}, byte(frameRead), readFrame{At: 3, N: 2}, byte(frameUnpack), nil, byte(frameType), kind),
		frames(byte(frameRead), readFrame{At: 1 << 62, N: 1}), frames(byte(frameRead), readFrame{At: -1, N: 1 << 30}),
		frames(byte(frameType), kind, byte(frameCount), countFrame{Pages: 1}, byte(framePicture), pictureFrame{Number: 1, Width: 2, Height: 2, Text: "x"}, byte('x'), "pixels"),
		frames(byte(frameRefusal), refusalFrame{CodeBroken}), frames(byte(frameNeed), nil), frames(byte(frameLegacy), legacyError{Format: "doc", Declared: "application/msword"}),
		frames(byte(frameMember), nil, byte(frameBytes), []byte("content"), byte(frameMemberEnd), nil, byte(frameMember), nil, byte(frameMemberEnd), nil, byte(frameEnd), end),
		frames(byte(frameMember), nil, byte(frameBytes), []byte("content"), byte(frameRefusal), refusalFrame{CodeExpands}),
		frames(byte(frameType), typeFrame{Media: "text/plain", Declared: "a\x1b[2Jb\n"}, byte(frameCount), countFrame{Pages: 1}, byte(framePage), pageFrame{Number: 1}, byte(frameEnd), end),
		frames(byte(frameMember), nil, byte(frameBytes), []byte("content"), byte(frameRefusal), refusalFrame{CodeExpands}, byte(frameEnd), end),
		[]byte("P\xff\xff\xff\xff"), []byte("P\x00\x00\x05\xdc"), []byte("T\x00\x00\x00\x04null"), []byte("E\x00"),
	} {
		f.Add(talk)
	}
}

// overheard is a conversation with a worker that says talk, about a content of ten digits.
func overheard(t *testing.T, talk []byte) (*conversation, *bytes.Buffer) {
	var handed bytes.Buffer
	return newConversation(t.Context(), bytes.NewReader(talk), &handed, strings.NewReader("0123456789"), 10), &handed
}

// A worker that was taken over says anything. What is made of it holds the limits, is plain text, and says nothing that only the
// parent can know; or the worker is refused. It gets no byte that is not the content's.
func FuzzWorkersText(f *testing.F) {
	addTalk(f)
	f.Fuzz(func(t *testing.T, talk []byte) {
		e := deafExtractor()
		with, handed := overheard(t, talk)
		c := newCollector(t.Context(), e, nil)
		err := c.finish(c.read(with))
		for asked := handed.Bytes(); len(asked) > 0; asked = asked[1:] {
			if asked[0] < '0' || asked[0] > '9' {
				t.Fatalf("the worker was handed %q", handed)
			}
		}
		var refusal *Refusal
		var legacy *legacyError
		switch {
		case err == nil:
		case errors.As(err, &refusal):
			if refusalMessages[refusal.Code] == "" || refusal.Message != refusalMessages[refusal.Code] {
				t.Errorf("refusal %+v", refusal)
			}
			return
		case errors.As(err, &legacy):
			worksOf(t, legacy.Declared)
			return
		case errors.Is(err, errFrame), errors.Is(err, errEnded), errors.Is(err, errNeedPDF), errors.Is(err, ErrEngineMissing):
			return
		default:
			t.Fatal(err)
		}
		doc := c.document()
		worksOf(t, doc.DeclaredMediaType)
		if !mediaType.MatchString(doc.MediaType) || doc.PageCount < 1 || doc.PageCount > maxCount || len(doc.Pages) > fuzzLimits.Pages || doc.Members < 0 || doc.LeftOut < 0 {
			t.Errorf("%+v", doc)
		}
		var length int64
		for i, p := range doc.Pages {
			length += int64(len(p.Text))
			if p.Number != i+1 || !utf8.ValidString(p.Text) || plain(p.Text) != p.Text || p.Source != SourceText {
				t.Errorf("%+v", p)
			}
			done := 0
			for _, run := range p.Hidden {
				if run.Start < done || run.End <= run.Start || run.End > len(p.Text) || !hiddenClasses[run.Class] {
					t.Errorf("%+v of %d bytes", p.Hidden, len(p.Text))
				}
				done = run.End
			}
		}
		if length > fuzzLimits.TextBytes {
			t.Errorf("%d bytes of text", length)
		}
	})
}

// worksOf refuses a declared type that nobody can have declared.
func worksOf(t *testing.T, declared string) {
	t.Helper()
	if len(declared) > maxMediaType || strings.ContainsFunc(declared, func(r rune) bool { return r <= ' ' || r >= unicode.MaxASCII }) {
		t.Errorf("declared as %q", declared)
	}
}

// The same for the members of a container: what is visited was sent, whole, and a member that breaks off is not taken for a whole one.
func FuzzWorkersMembers(f *testing.F) {
	addTalk(f)
	f.Fuzz(func(t *testing.T, talk []byte) {
		with, _ := overheard(t, talk)
		length, broken := 0, 0
		visitErr, err := with.members(func(r io.Reader) error {
			b, err := io.ReadAll(r)
			length += len(b)
			if len(b) > 0 && !bytes.Contains(talk, b[:1]) {
				t.Errorf("%q was never sent", b)
			}
			if err != nil {
				broken++
			}
			return err
		})
		var refusal *Refusal
		switch {
		case length > len(talk):
			t.Errorf("%d bytes of members in a talk of %d", length, len(talk))
		case err == nil && (broken > 0 || visitErr != nil):
			t.Errorf("%d members broke off, and the end is good", broken)
		case err != nil && !errors.As(err, &refusal) && !errors.Is(err, errFrame) && !errors.Is(err, errEnded) && !errors.Is(err, errNeedPDF):
			t.Error(err)
		}
	})
}

// A frame is what was written as one, or there is an error; a length is never believed beyond its limit.
func FuzzFrame(f *testing.F) {
	addTalk(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		const limit = 1 << 10
		r := bytes.NewReader(raw)
		kind, payload, err := takeFrame(r, limit)
		if err != nil {
			if payload != nil || errors.Is(err, errFrame) != (len(raw) >= 5 && binary.BigEndian.Uint32(raw[1:]) > limit) {
				t.Errorf("%v with %d bytes", err, len(payload))
			}
			return
		}
		var again bytes.Buffer
		if err := writeRaw(&again, kind, payload); err != nil || !bytes.HasPrefix(raw, again.Bytes()) || r.Len() != len(raw)-again.Len() {
			t.Errorf("%q is read as %q, %v", raw, again.Bytes(), err)
		}
	})
}

// fuzzTypes are what a document may be declared as.
var fuzzTypes = []string{"", "text/plain", "application/pdf", "text/html", "message/rfc822", "application/msword", "image/tiff", "text/markdown; charset=utf-16", "application/zip", "application/" + strings.Repeat("x", 200)}

// A document of whatever bytes ends in what its parent takes for an honest worker's words, within the limits. PDF has its engine,
// whose targets are mutants (mutants_test.go); pictures are decoded, and not recognised.
func FuzzDocument(f *testing.F) {
	for name, content := range mutated(f) {
		if !strings.HasPrefix(name, "pdf") {
			f.Add(content, uint8(0))
		}
	}
	for i, text := range []string{"A note.", "a,b\n1,2", "%PDF-1.7 not", "<!DOCTYPE html><p>A <b>note</b>", "From: a\r\nSubject: b\r\n\r\nText", `{\rtf1 A note.}`, "# A\n\n- note", "\xff\xfea\x00b\x00"} {
		f.Add([]byte(text), uint8(i))
	}
	f.Add([]byte("A note."), uint8(len(fuzzTypes)-1))
	f.Fuzz(func(t *testing.T, content []byte, as uint8) {
		if len(content) > 256<<10 {
			return
		}
		var said bytes.Buffer
		w := &worker{
			job: job{Size: int64(len(content)), Declared: fuzzTypes[int(as)%len(fuzzTypes)], InputBytes: fuzzLimits.InputBytes, Pages: fuzzLimits.Pages, OCRPages: fuzzLimits.OCRPages,
				PagePixels: fuzzLimits.PagePixels, TextBytes: fuzzLimits.TextBytes, ExpandedBytes: fuzzLimits.ExpandedBytes},
			to: &sink{out: bufio.NewWriter(&said), pagesLeft: fuzzLimits.Pages, textLeft: fuzzLimits.TextBytes, picturesLeft: fuzzLimits.OCRPages},
		}
		in := bytes.NewReader(content)
		d, err := detect(in, w.job.Size, w.job.Declared)
		if err == nil && legacyTypes[d.format].media == "" && d.format != formatPDF && d.format != formatArchive && d.format != formatMail {
			_ = w.to.send(frameType, typeFrame{Media: d.media, Declared: d.declared})
			tree := tree{worker: w, budget: archive.NewBudget(archive.DefaultLimits(), w.job.Size)}
			err = tree.read(d, in, w.job.Size)
		}
		var refusal *Refusal
		if err != nil && !errors.Is(err, errEnough) && !errors.Is(err, errNeedPDF) && !errors.As(err, &refusal) {
			t.Fatalf("%T: %v", err, err)
		}
		if err != nil && !errors.Is(err, errEnough) || w.to.numbered == 0 {
			return
		}
		_ = w.to.send(frameEnd, endFrame{Truncated: w.to.truncated, Members: w.to.members, LeftOut: w.to.leftOut})
		c := newCollector(t.Context(), deafExtractor(), nil)
		with := newConversation(t.Context(), &said, io.Discard, in, w.job.Size)
		if err := c.finish(c.read(with)); err != nil && !errors.Is(err, ErrEngineMissing) {
			t.Fatalf("an honest worker is refused: %v", err)
		}
	})
}
