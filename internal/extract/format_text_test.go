package extract

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	wide "golang.org/x/text/encoding/unicode"
)

func TestTextEncodings(t *testing.T) {
	t.Parallel()
	const (
		latin    = "Die Prüfung der Schweißnähte übernahm das Werk für größere Ventile in Köln.\nÄnderungen folgen."
		cyrillic = "Завод производит запорную арматуру для нефтяной и газовой промышленности с тысяча девятьсот восемьдесят седьмого года."
		japan    = "工場は圧力弁を製造しています。検査は毎日行われます。"
	)
	for _, c := range []struct {
		name, text, declared string
		in                   encoding.Encoding
	}{
		{"utf-8", latin, "text/plain", encoding.Nop},
		{"utf-8 called latin-1", latin, "text/plain; charset=iso-8859-1", encoding.Nop},
		{"utf-8 with a mark", latin, "text/plain", wide.UTF8BOM},
		{"utf-16 little endian with a mark", latin, "text/plain", wide.UTF16(wide.LittleEndian, wide.UseBOM)},
		{"utf-16 big endian with a mark", japan, "text/plain", wide.UTF16(wide.BigEndian, wide.UseBOM)},
		{"utf-16 little endian", latin, "text/plain", wide.UTF16(wide.LittleEndian, wide.IgnoreBOM)},
		{"utf-16 big endian", latin, "text/plain", wide.UTF16(wide.BigEndian, wide.IgnoreBOM)},
		{"windows-1252, not declared", latin, "text/plain", charmap.Windows1252},
		{"windows-1251, not declared", cyrillic, "text/plain", charmap.Windows1251},
		{"shift_jis, declared", japan, "text/plain; charset=Shift_JIS", japanese.ShiftJIS},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			content, err := c.in.NewEncoder().String(c.text)
			if err != nil {
				t.Fatal(err)
			}
			doc := extract(t, extractor(t), []byte(content), c.declared)
			if len(doc.Pages) != 1 || doc.Pages[0].Text != c.text || doc.Truncated || doc.MediaType != "text/plain" {
				t.Errorf("document %+v, want %q", doc, c.text)
			}
		})
	}
}

func TestTextIsPlain(t *testing.T) {
	t.Parallel()
	doc := extract(t, extractor(t), []byte("one\r\ntwo\rthree\tfour\ffive\x1b[31m six\x7f \u0085seven"), "text/plain")
	if got, want := doc.Pages[0].Text, "one\ntwo\nthree\tfour\ffive[31m six seven"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTextLimit(t *testing.T) {
	t.Parallel()
	e := extractor(t, func(config *Config) { config.Limits.TextBytes = 1001 })
	for name, length := range map[string]int{"a little over": 1200, "far over": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := extract(t, e, []byte(strings.Repeat("ü", length/2)), "text/plain")
			if !doc.Truncated || doc.Pages[0].Text != strings.Repeat("ü", 500) {
				t.Errorf("truncated %t, %d bytes", doc.Truncated, len(doc.Pages[0].Text))
			}
		})
	}
	t.Run("just within", func(t *testing.T) {
		t.Parallel()
		doc := extract(t, e, []byte(strings.Repeat("ü", 500)), "text/plain")
		if doc.Truncated || len(doc.Pages[0].Text) != 1000 {
			t.Errorf("truncated %t, %d bytes", doc.Truncated, len(doc.Pages[0].Text))
		}
	})
}

func TestBinaryBehindTextIsRefused(t *testing.T) {
	t.Parallel()
	content := []byte(strings.Repeat("words ", 1000))
	for i := range 6000 {
		content = append(content, byte(i%32))
	}
	refused(t, extractor(t), content, "text/plain", CodeBroken)
}
