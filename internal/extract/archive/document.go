package archive

import (
	"encoding/xml"
	"io"
	"strings"
)

const declarationBytes = 1 << 20 // the longest list of content types that is read

// ZipMediaType is the media type of a document that is a zip archive by itself, as it says: OpenDocument and EPUB in their first
// member, mimetype; Office Open XML in [Content_Types].xml. Empty for any other archive, one that says two things, or one that Walk
// would refuse.
func ZipMediaType(content io.ReaderAt, size int64) string {
	src := NewSource(content, size)
	b := NewBudget(DefaultLimits(), size)
	d, err := readDirectory(src, b)
	if err != nil || d.check(src) != nil {
		return ""
	}
	var first, types *entry
	for i := range d.entries {
		switch e := &d.entries[i]; {
		case e.name == "mimetype" && first == nil && e.method == stored && e.size <= 128:
			first = e
		case e.name == "[Content_Types].xml" && types == nil && e.size <= declarationBytes:
			types = e
		case e.name == "mimetype", strings.EqualFold(e.name, "[Content_Types].xml"):
			return ""
		}
	}
	switch {
	case first != nil && types == nil:
		raw, err := io.ReadAll(b.Reader(newEntryReader(src, first)))
		if err != nil {
			return ""
		}
		return strings.ToLower(strings.TrimSpace(string(raw)))
	case types != nil && first == nil:
		return mainType(b.Reader(newEntryReader(src, types)))
	}
	return ""
}

// mainType is the media type of the document whose main part is listed.
func mainType(list io.Reader) string {
	found := ""
	in := xml.NewDecoder(list)
	for {
		token, err := in.Token()
		if err == io.EOF {
			return found
		}
		if err != nil {
			return ""
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range start.Attr {
			media, ok := strings.CutSuffix(a.Value, ".main+xml")
			if a.Name.Local != "ContentType" || !ok {
				continue
			}
			if strings.HasSuffix(strings.ToLower(media), "macroenabled") {
				media += ".12" // as it is registered
			}
			if found != "" && !strings.EqualFold(found, media) {
				return ""
			}
			found = media
		}
	}
}
