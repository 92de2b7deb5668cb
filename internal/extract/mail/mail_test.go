package mail

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"mime/quotedprintable"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/archive"
)

func file(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

type seen struct{ name, media, content string }

func walk(raw string) ([]seen, error) {
	var got []seen
	err := Walk(strings.NewReader(raw), int64(len(raw)), archive.NewBudget(archive.DefaultLimits(), int64(len(raw))), func(m archive.Member, content io.Reader) error {
		all, err := io.ReadAll(content)
		got = append(got, seen{m.Name, m.Type, string(all)})
		return err
	})
	return got, err
}

func read(t testing.TB, raw string) *Message {
	t.Helper()
	m, err := Read(strings.NewReader(raw), int64(len(raw)), archive.NewBudget(archive.DefaultLimits(), int64(len(raw))))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var picture = func() string {
	raw := "\x89PNG\r\n\x1a\n"
	for i := range 256 {
		raw += string([]byte{byte(i)})
	}
	return raw
}()

const (
	plainText = "Dear all,\nthe figures are attached — see größe.\n"
	htmlText  = "<p>Dear all,<br>the figures are <b>attached</b></p>\n"
)

func TestReadOfARealMessage(t *testing.T) {
	raw := file(t, "mixed.eml")
	if !Detect([]byte(raw)[:1000]) {
		t.Error("not detected")
	}
	m := read(t, raw)
	head := "From: Jörg Müller <joerg@example.org>\nTo: Ada <ada@example.com>, bob@example.com\nCc: list@example.net\n" +
		"Date: Thu, 01 Jan 2026 12:00:00 +0000\nSubject: Größe und Maß: the quarterly figures 📈\n"
	if m.Head() != head {
		t.Errorf("head %q", m.Head())
	}
	if m.Text != strings.TrimSpace(plainText) || strings.ReplaceAll(string(m.HTML), "\r", "") != htmlText || m.HTMLCharset != "utf-8" || !m.Alternative {
		t.Errorf("text %q, html %q in %q, alternative %t", m.Text, m.HTML, m.HTMLCharset, m.Alternative)
	}
	var got []seen
	for _, a := range m.Attachments {
		content, err := io.ReadAll(a.Open())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, seen{a.Name, a.MediaType, string(content)})
	}
	if len(got) != 3 || got[0] != (seen{"", "image/png", picture}) || got[1] != (seen{"figures größe.csv", "text/csv", "a;b\n1;2\n"}) ||
		got[2].media != "message/rfc822" {
		t.Fatalf("attachments %q", got)
	}
	if !Detect([]byte(got[2].content)) || read(t, got[2].content).Text != "inner text" {
		t.Errorf("the message within is %q", got[2].content)
	}
	if !m.Attachments[0].Inline || m.Attachments[1].Inline {
		t.Error("inline and attached are mixed up")
	}
}

func TestWalkOfARealMessage(t *testing.T) {
	got, err := walk(file(t, "mixed.eml"))
	if err != nil {
		t.Fatal(err)
	}
	var media []string
	for i := range got {
		media = append(media, got[i].media)
		got[i].content = strings.ReplaceAll(got[i].content, "\r\n", "\n")
	}
	if want := []string{"text/plain", "text/html", "image/png", "text/csv", "message/rfc822"}; !slices.Equal(media, want) {
		t.Fatalf("parts %q", media)
	}
	if got[0].content != plainText || got[1].content != htmlText || got[3].content != "a;b\n1;2\n" {
		t.Errorf("parts %q", got)
	}
}

func TestReadOfHTMLAlone(t *testing.T) {
	raw := file(t, "html.mbox")
	if !Detect([]byte(raw)) {
		t.Error("not detected")
	}
	m := read(t, raw)
	if m.Text != "" || strings.TrimSpace(string(m.HTML)) != "<p>caf\xe9</p>" || m.HTMLCharset != "iso-8859-1" || m.Alternative || len(m.Attachments) != 0 {
		t.Errorf("%+v", m)
	}
}

// message is a header and a body; fields without From and Date.
func message(fields, body string) string {
	return "From: a@example.org\r\nDate: today\r\n" + fields + "\r\n\r\n" + body
}

func multipart(body string) string {
	return message("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b", strings.ReplaceAll(body, "\n", "\r\n"))
}

func TestRefusals(t *testing.T) {
	deep := ""
	for i := range nesting + 2 {
		b := strings.Repeat("x", i+1) + "_"
		deep += "Content-Type: multipart/mixed; boundary=" + b + "\r\n\r\n--" + b + "\r\n"
	}
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		"PGP/MIME":                      {message(`Content-Type: multipart/encrypted; boundary=b; protocol="application/pgp-encrypted"`, "--b\r\n\r\nx\r\n--b--"), archive.ErrEncrypted},
		"PGP in the text":               {message("X: y", "\r\n-----BEGIN PGP MESSAGE-----\r\n\r\nabc"), archive.ErrEncrypted},
		"S/MIME enveloped":              {message("Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m", "x"), archive.ErrEncrypted},
		"S/MIME, nothing said":          {message("Content-Type: application/x-pkcs7-mime", "x"), archive.ErrEncrypted},
		"S/MIME signed, opaque":         {message("Content-Type: application/pkcs7-mime; smime-type=signed-data", "x"), archive.ErrUnsupported},
		"part of a message":             {message("Content-Type: message/partial; id=1; number=1", "x"), archive.ErrUnsupported},
		"unknown encoding":              {message("Content-Transfer-Encoding: x-uuencode", "x"), archive.ErrUnsupported},
		"base64, other characters":      {message("Content-Transfer-Encoding: base64", "QUJD*A=="), archive.ErrBroken},
		"base64, cut":                   {message("Content-Transfer-Encoding: base64", "QUJDR"), archive.ErrBroken},
		"base64, behind the padding":    {message("Content-Transfer-Encoding: base64", "QQ==QUJD"), archive.ErrBroken},
		"base64, behind a long padding": {message("Content-Transfer-Encoding: base64", strings.Repeat("QUJD", 255)+"QQ=="+strings.Repeat("QUJD", 300)), archive.ErrBroken},
		"quoted-printable":              {message("Content-Transfer-Encoding: quoted-printable", "100 =3D \x01"), archive.ErrBroken},
		"encoding twice":                {message("Content-Transfer-Encoding: 7bit\r\ncontent-transfer-encoding: base64", "QQ=="), archive.ErrBroken},
		"type twice":                    {message("Content-Type: text/plain\r\nContent-Type: text/html", "x"), archive.ErrBroken},
		"multipart encoded":             {message("Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: base64", "LS1i"), archive.ErrBroken},
		"no boundary":                   {message("Content-Type: multipart/mixed", "--b\r\n\r\nx\r\n--b--"), archive.ErrBroken},
		"two boundaries":                {message("Content-Type: multipart/mixed; boundary=b; boundary=c", "--b\r\n\r\nx\r\n--b--"), archive.ErrBroken},
		"boundary in pieces":            {message("Content-Type: multipart/mixed; boundary*0=b; boundary*1=c", "--bc\r\n\r\nx\r\n--bc--"), archive.ErrBroken},
		"type with a comment":           {message("Content-Type: multipart/mixed (x); boundary=b", "--b\r\n\r\nx\r\n--b--"), archive.ErrBroken},
		"no parts":                      {multipart("nothing here"), archive.ErrBroken},
		"delimiter that goes on":        {multipart("--b\n\nx\n--bc\n\ny\n--b--"), archive.ErrBroken},
		"delimiter behind a CR":         {multipart("--b\n\nx\r--b\n\ny\n--b--"), archive.ErrBroken},
		"delimiter after the last":      {multipart("--b\n\nx\n--b--\n--b\n\ny\n--b--"), archive.ErrBroken},
		"line in a header":              {message("this is no field", "x"), archive.ErrBroken},
		"CR in a header":                {message("X: a\rContent-Type: text/html", "x"), archive.ErrBroken},
		"header without end":            {message(strings.Repeat("X: y\r\n", headerBytes/6)+"X: z", "x"), archive.ErrTooLarge},
		"multiparts in each other":      {"From: a\r\nDate: b\r\n" + deep, archive.ErrTooDeep},
		"too many parts":                {multipart(strings.Repeat("--b\n\n\n", 10_001) + "--b--"), archive.ErrTooMany},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := walk(c.raw); !errors.Is(err, c.want) {
				t.Errorf("walk: %d parts, error %v, want %v", len(got), err, c.want)
			}
			m, err := Read(strings.NewReader(c.raw), int64(len(c.raw)), archive.NewBudget(archive.DefaultLimits(), 100))
			if err == nil && len(m.Attachments) == 1 {
				_, err = io.ReadAll(m.Attachments[0].Open())
			}
			if !errors.Is(err, c.want) {
				t.Errorf("read: error %v, want %v", err, c.want)
			}
		})
	}
}

func TestAccepts(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want []seen
	}{
		"no MIME":              {message("Subject: x", "plain"), []seen{{"", "text/plain", "plain"}}},
		"no body":              {"From: a\nDate: b\n", []seen{{"", "text/plain", ""}}},
		"line feeds":           {strings.ReplaceAll(multipart("--b\n\nx\n--b--\n"), "\r", ""), []seen{{"", "text/plain", "x"}}},
		"before and behind":    {multipart("before\n--b\n\nx\n--b--\nbehind\n"), []seen{{"", "text/plain", "x"}, {"", "text/plain", "before"}, {"", "text/plain", "behind\r\n"}}},
		"last one missing":     {multipart("--b\n\nx\n--b\n\ny"), []seen{{"", "text/plain", "x"}, {"", "text/plain", "y"}}},
		"delimiter and spaces": {multipart("--b \t\n\nx\n--b--  \n"), []seen{{"", "text/plain", "x"}}},
		"delimiter in a line":  {multipart("--b\n\nx --b y\n--b--"), []seen{{"", "text/plain", "x --b y"}}},
		"empty part":           {multipart("--b\n\n--b--"), []seen{{"", "text/plain", ""}}},
		"digest":               {strings.Replace(multipart("--b\n\nFrom: x\n\ny\n--b--"), "mixed", "digest", 1), []seen{{"", "message/rfc822", "From: x\r\n\r\ny"}}},
		"base64 with spaces":   {message("Content-Transfer-Encoding: BASE64", " QU\tJD \r\nQQ=\r\n="), []seen{{"", "text/plain", "ABCA"}}},
		"names": {multipart("--b\nContent-Type: a/b; name=\"=?utf-8?q?..=2F=E2=82=AC=00.exe?=\"\n\nx\n--b\nContent-Disposition: attachment; filename=\"C:\\\\x\\\\y.doc\"\n\nx\n--b--"),
			[]seen{{"€_.exe", "a/b", "x"}, {"C:/x/y.doc", "text/plain", "x"}}},
		"lone equals sign":  {message("Content-Transfer-Encoding: quoted-printable", "1 = 2 =ZZ=3D"), []seen{{"", "text/plain", "1 = 2 =ZZ="}}},
		"type that is none": {message("Content-Type: text", "x"), []seen{{"", "text/plain", "x"}}},
		"certificates":      {message("Content-Type: application/pkcs7-mime; smime-type=certs-only", "x"), []seen{{"", "application/pkcs7-mime", "x"}}},
	} {
		if got, err := walk(c.raw); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: parts %q, error %v; want %q", name, got, err, c.want)
		}
	}
}

func TestReadJoinsTextAndKeepsTheRest(t *testing.T) {
	m := read(t, multipart("--b\n\none\n--b\nContent-Type: text/html; charset=x\n\n<p>\n--b\nContent-Type: text/plain; charset=iso-8859-1\n\ntwo \xe9\n"+
		"--b\nContent-Type: text/html\n\n<i>\n--b\nContent-Disposition: attachment; filename=a.txt\n\nthree\n--b--"))
	if m.Text != "one\n\ntwo é" || string(m.HTML) != "<p>" || m.Alternative || len(m.Attachments) != 2 {
		t.Errorf("%+v", m)
	}
	long := read(t, message("Subject: =?utf-8?b?YQpCY2M6IHg=?=", strings.Repeat("x", textBytes+1)))
	if !long.Truncated || len(long.Text) != textBytes || long.Subject != "a Bcc: x" {
		t.Errorf("truncated %t, %d bytes, subject %q", long.Truncated, len(long.Text), long.Subject)
	}
}

func TestDetect(t *testing.T) {
	for raw, want := range map[string]bool{
		"Subject: x\nFrom: y\n\nz":                        true,
		"From a@b Thu\nReceived: x\n by y\nDate: z\n\n":   true,
		"Received: x\r\nMessage-ID: y":                    true,
		"Subject: x\n\nFrom: y":                           false, // the second lies in the body
		"Subject: x\nFrom: y\nand then a line of prose\n": false,
		"From: x\nDate: y\x00":                            false,
		"Dear From: and Date: x":                          false,
		"":                                                false,
		"title: x\ndate: y\nauthor: z\n":                  false,
	} {
		if got := Detect([]byte(raw)); got != want {
			t.Errorf("%q: %t", raw, got)
		}
	}
}

// faulty cannot be read from an offset on.
type faulty struct {
	*strings.Reader
	from int64
	err  error
}

func (f faulty) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.from {
		return 0, f.err
	}
	return f.Reader.ReadAt(p, offset)
}

func TestWalkPassesOnErrors(t *testing.T) {
	raw, mine := file(t, "mixed.eml"), errors.New("mine")
	for from := 0; from < len(raw); from += 97 {
		b := archive.NewBudget(archive.DefaultLimits(), int64(len(raw)))
		err := Walk(faulty{strings.NewReader(raw), int64(from), mine}, int64(len(raw)), b, func(archive.Member, io.Reader) error { return nil })
		if !errors.Is(err, mine) || errors.Is(err, archive.ErrBroken) {
			t.Errorf("unreadable from %d: %v", from, err)
		}
	}
}

// bounded reads whatever it is given.
func bounded(t testing.TB, raw string) {
	limits := archive.Limits{Depth: 2, Members: 50, MemberBytes: 1 << 20, ExpandedBytes: 2 << 20, Ratio: 2}
	b := archive.NewBudget(limits, int64(len(raw)))
	_ = Walk(strings.NewReader(raw), int64(len(raw)), b, func(_ archive.Member, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
	if b.Expanded() > int64(len(raw))*2 {
		t.Errorf("%d bytes of a message of %d", b.Expanded(), len(raw))
	}
	m, err := Read(strings.NewReader(raw), int64(len(raw)), archive.NewBudget(limits, int64(len(raw))))
	if err == nil && (!strings.HasPrefix(m.Subject, strings.TrimSpace(m.Subject)) || strings.ContainsAny(m.Head(), "\r\x00") || !isClean(m.Text)) {
		t.Errorf("head %q", m.Head())
	}
	Detect([]byte(raw))
}

func isClean(text string) bool { return strings.ToValidUTF8(text, "") == text }

func TestMutations(t *testing.T) {
	var qp bytes.Buffer
	w := quotedprintable.NewWriter(&qp)
	_, _ = io.WriteString(w, strings.Repeat("größe = 1\n", 20))
	_ = w.Close()
	for _, raw := range []string{file(t, "mixed.eml"), file(t, "html.mbox"), message("Content-Transfer-Encoding: quoted-printable", qp.String())} {
		for seed := range uint64(400) {
			random := rand.New(rand.NewPCG(seed, 7))
			changed := []byte(raw)
			for range 1 + random.IntN(5) {
				at := random.IntN(len(changed))
				switch random.IntN(5) {
				case 0:
					changed[at] ^= 1 << random.IntN(8)
				case 1:
					changed[at] = "\r\n-=:;\"\x00 "[random.IntN(9)]
				case 2:
					changed = changed[:at+1]
				case 3:
					changed = slices.Insert(changed, at, changed[at:min(at+random.IntN(80), len(changed))]...)
				case 4:
					changed = slices.Delete(changed, at, min(at+random.IntN(20), len(changed)-1))
				}
			}
			bounded(t, string(changed))
		}
	}
}

func FuzzWalk(f *testing.F) {
	f.Add(file(f, "mixed.eml"))
	f.Add(file(f, "html.mbox"))
	f.Add(multipart("before\n--b\n\nx\n--b--\nbehind\n"))
	f.Fuzz(func(t *testing.T, raw string) { bounded(t, raw) })
}
