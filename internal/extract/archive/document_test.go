package archive

import (
	"bytes"
	"testing"
)

func TestZipMediaType(t *testing.T) {
	const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	types := func(media ...string) row {
		list := "<Types>"
		for _, m := range media {
			list += `<Override PartName="/x" ContentType="` + m + `"/>`
		}
		return squeezed("[Content_Types].xml", list+"</Types>")
	}
	odt := plain("mimetype", "application/vnd.oasis.opendocument.text")
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"docx":           {file(t, "note.docx"), docx},
		"odt":            {file(t, "note.odt"), "application/vnd.oasis.opendocument.text"},
		"zip":            {file(t, "infozip.zip"), ""},
		"macros":         {zipOf(types("application/vnd.ms-word.document.macroEnabled.main+xml")), "application/vnd.ms-word.document.macroEnabled.12"},
		"two main parts": {zipOf(types(docx+".main+xml", "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml")), ""},
		"both":           {zipOf(odt, types(docx+".main+xml")), ""},
		"twice":          {zipOf(odt, odt), ""},
		"broken":         {file(t, "note.odt")[10:], ""},
		"no archive":     {[]byte(text), ""},
	} {
		if got := ZipMediaType(bytes.NewReader(c.raw), int64(len(c.raw))); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
