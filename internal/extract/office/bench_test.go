package office

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

// BenchmarkRead reads a report of some 40,000 paragraphs and sheets of some 300,000 cells; bytes are those of the XML.
func BenchmarkRead(b *testing.B) {
	sentence := "The keeper noted fine weather, and the lens was cleaned before dusk."
	report := wordFile(strings.Repeat(para(sentence, `<w:sz w:val="22"/>`), 40_000))
	var rows, lines strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&rows, `<row r="%d">`, i+1)
		lines.WriteString(`<table:table-row>`)
		for c := range 10 {
			fmt.Fprintf(&rows, `<c r="%c%d" t="s"><v>%d</v></c>`, 'A'+c, i+1, c)
			fmt.Fprintf(&lines, `<table:table-cell><text:p>%d</text:p></table:table-cell>`, i*c)
		}
		rows.WriteString(`</row>`)
		lines.WriteString(`</table:table-row>`)
	}
	book := bookFile(strings.Repeat(`<si><t>lamp</t></si>`, 10), "", `name="S"`, `<sheetData>`+rows.String()+`</sheetData>`)
	calc := odfFile(`<office:spreadsheet><table:table table:name="S">`+lines.String()+`</table:table></office:spreadsheet>`, "")
	text := odfFile(`<office:text>`+strings.Repeat(`<text:p text:style-name="P1">`+sentence+`</text:p>`, 40_000)+`</office:text>`, "")
	for _, c := range []struct {
		name  string
		media string
		parts parts
	}{{"docx", docx, report}, {"xlsx", xlsx, book}, {"ods", ods, calc}, {"odt", odt, text}} {
		b.Run(c.name, func(b *testing.B) {
			file, size := c.parts.zip(b), 0
			for i := 1; i < len(c.parts); i += 2 {
				size += len(c.parts[i])
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, err := Read(c.media, bytes.NewReader(file), int64(len(file)), page.Limits{Pages: 100, TextBytes: 8 << 20, ExpandedBytes: 1 << 30}, func(page.Page) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
