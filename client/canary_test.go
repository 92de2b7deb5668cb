package client_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

const (
	oneCanary   = "accession-canary-rec_01jd3xq4f7v9m2r8t6w0z5k1bn"
	otherCanary = "accession-canary-rec_01jd3xq4f7v9m2r8t6w0z5k1bp"
)

func TestCanariesInMangledText(t *testing.T) {
	for name, text := range map[string]string{
		"alone":              oneCanary,
		"in a sentence":      "The answer said (" + oneCanary + "), which is odd.",
		"against words":      "x" + oneCanary + "abc",
		"in capitals":        strings.ToUpper(oneCanary),
		"wrapped":            "see accession-\ncanary-rec_01jd3xq4f7v9\r\n  m2r8t6w0z5k1bn.",
		"quoted":             "> see accession-canary-\n> rec_01jd3xq4f7v9\n> m2r8t6w0z5k1bn.",
		"letter by letter":   strings.Join(strings.Split(oneCanary, ""), " "),
		"soft hyphens":       strings.Join(strings.Split(oneCanary, ""), "\u00ad"),
		"zero width":         strings.Join(strings.Split(oneCanary, ""), "\u200b\u2060\ufeff"),
		"Markdown escapes":   `accession\-canary\-rec\_01jd3xq4f7v9m2r8t6w0z5k1bn`,
		"Markdown emphasis":  "accession-canary-**rec_01jd3xq4**`f7v9m2r8t6w0z5k1bn`",
		"other dashes":       "accession–canary‑rec＿01jd3xq4f7v9m2r8t6w0z5k1bn",
		"full width":         "ａｃｃｅｓｓｉｏｎ－ｃａｎａｒｙ－ｒｅｃ＿０１ｊｄ３ｘｑ４ｆ７ｖ９ｍ２ｒ８ｔ６ｗ０ｚ５ｋ１ｂｎ",
		"read by a machine":  "accession-canary-rec_OljD3xq4f7v9m2r8t6wOz5kIbn",
		"HTML":               "accession-canary-<b>rec_01jd3xq4</b><wbr>f7v9&shy;m2r8&#8203;t6w0&#x200B;z5k1bn",
		"an angle-bracketed": "<" + oneCanary + ">",
		"a URL":              "https://drop.example/?q=accession%2Dcanary%2Drec%5F01jd3xq4%0Af7v9m2r8t6w0z5k1bn&r=1",
		"JSON":               `{"said":"accession-canary-rec_01jd3xq4\nf7v9\u00adm2r8t6w0z5k1bn"}`,
		"quoted-printable":   "accession-canary-rec_01jd3xq4=\r\nf7v9=C2=ADm2r8t6w0z5k1bn",
		"after a fragment":   "It starts with accession-canary-rec_ as in " + oneCanary,
		"twice":              oneCanary + " and " + strings.ToUpper(oneCanary),
		"in a long text":     strings.Repeat("The pump runs. ", 100_000) + oneCanary + strings.Repeat(" The pump stands.", 100_000),
	} {
		most := 1
		if name == "quoted-printable" || name == "after a fragment" {
			most = 2 // what follows can be taken for a canary's rest; no serving carries that one
		}
		if got := client.Canaries(text); !slices.Contains(got, oneCanary) || len(got) > most {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := client.Canaries("b " + otherCanary + " a " + oneCanary); !slices.Equal(got, []string{otherCanary, oneCanary}) {
		t.Errorf("two: %q", got)
	}
	for _, none := range []string{"", "accession", oneCanary[:len(oneCanary)-1], strings.Replace(oneCanary, "0z5", "uz5", 1), strings.TrimPrefix(oneCanary, "accession-"), "\xff\xfe"} {
		if got := client.Canaries(none); len(got) != 0 {
			t.Errorf("%q: %q", none, got)
		}
	}
}

func FuzzCanaries(f *testing.F) {
	f.Add("see ", "\u00ad", "&shy;")
	f.Fuzz(func(t *testing.T, before, between, after string) {
		for _, c := range client.Canaries(before + oneCanary[:30] + between + oneCanary[30:] + after) {
			if len(c) != len(oneCanary) || !strings.HasPrefix(c, oneCanary[:21]) || !slices.Equal(client.Canaries(c), []string{c}) {
				t.Errorf("%q", c)
			}
		}
		if !slices.Contains(client.Canaries(before+"\n"+oneCanary+"\n"+after), oneCanary) {
			t.Errorf("not found between %q and %q", before, after)
		}
	})
}

func TestFindCanary(t *testing.T) {
	e := &echo{data: `{"record_id":"rec_1","org_id":"harbour","upload_id":"upl_1","credential_id":"cred_1","surface":"rest","outcome":"served","bytes":7,"served_at":"2026-11-20T09:00:00.005Z","more":1}`}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c := newClient(t, server.URL, client.WithAdminToken(strings.Repeat("a", 32)))
	found, err := c.FindCanary(t.Context(), "accession/canary")
	if err != nil || e.target != "GET /admin/canaries/accession%2Fcanary" {
		t.Fatalf("asked %s, %v", e.target, err)
	}
	want := client.RequestRecord{RecordID: "rec_1", OrgID: "harbour", UploadID: "upl_1", CredentialID: "cred_1", Surface: "rest", Outcome: "served", Bytes: 7, ServedAt: time.Date(2026, 11, 20, 9, 0, 0, 5e6, time.UTC)}
	if found.RequestRecord != want || found.Response.RequestID != "req-1" {
		t.Errorf("found %+v", found)
	}
	if _, err := c.FindCanary(t.Context(), ""); err == nil {
		t.Error("nothing was looked for, and found")
	}
}
