package markup

import (
	"errors"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

var roomy = page.Limits{Pages: 100, TextBytes: 1 << 20, ExpandedBytes: 64 << 20}

// one reads content that is a single page.
func one(t *testing.T, read func(emit func(page.Page) error) (bool, error)) page.Page {
	t.Helper()
	var pages []page.Page
	truncated, err := read(func(p page.Page) error { pages = append(pages, p); return nil })
	if err != nil || truncated || len(pages) != 1 {
		t.Fatalf("%d pages, truncated %t, %v", len(pages), truncated, err)
	}
	return pages[0]
}

func htmlPage(t *testing.T, content, declared string) page.Page {
	t.Helper()
	return one(t, func(emit func(page.Page) error) (bool, error) {
		return ReadHTML(strings.NewReader(content), int64(len(content)), declared, roomy, emit)
	})
}

// marked shows hidden runs in the text: [class:text].
func marked(p page.Page) string {
	var b strings.Builder
	at := 0
	for _, h := range p.Hidden {
		b.WriteString(p.Text[at:h.Start] + "[" + h.Class + ":" + p.Text[h.Start:h.End] + "]")
		at = h.End
	}
	return b.String() + p.Text[at:]
}

func TestHTMLLayout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"title first", `<body><p>text</p></body><title> The
			title</title>`, "The title\n\ntext"},
		{"second title", `<title>a</title><title>b</title>c`, "a\n\nc"},
		{"paragraphs", "<p>one\n two<p>three</p>four", "one two\n\nthree\n\nfour"},
		{"lines", `<div>a</div><div>b<div>c</div></div>d`, "a\nb\nc\nd"},
		{"inline", `a<b>b</b> <i> c</i>d<wbr>e`, "ab cde"},
		{"br", `a<br>b<br/><br>c`, "a\nb\n\nc"},
		{"headings", `<h1>A</h1>text<h2>B</h2>`, "A\n\ntext\n\nB"},
		{"entities", `a &lt;b&gt; &amp;amp; &eacute;&#x20AC;&nbsp;&unknown; x<y`, "a <b> &amp; é€\u00a0&unknown; x"},
		{"less than", `1 < 2 <3 <`, "1 < 2 <3 <"},
		{"unordered", `<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e`, "- a\n- b\n  - c\n- d\n\ne"},
		{"ordered", `<ol start=3><li>a</li><li value=7>b</li><li>c</li></ol>`, "3. a\n7. b\n8. c"},
		{"loose list", `<ul><li><p>a</p></li><li><p>b</p></li></ul>`, "- a\n\n- b"},
		{"definitions", `<dl><dt>a<dd>b<dt>c<dd>d</dl>`, "a\nb\nc\nd"},
		{"table", `<table><caption>C</caption><tr><th>a<th>b<tr><td></td><td>c</td><tr><td>d<td><td>e<td></table>f`, "C\na\tb\n\tc\nd\t\te\n\nf"},
		{"table with paragraphs", `<table><tr><td><p>a</p></td><td><p>b</p><p>c</p></td><td>d</td></tr></table>`, "a\tb\n\nc\td"},
		{"table in a table", `<table><tr><td>a<table><tr><td>b<td>c</table></td><td>d</td></tr><tr><td>e</table>`, "a\n\nb\tc\td\ne"},
		{"pre", "<pre>\n a\n  b\t<b>c</b>\n</pre>d", " a\n  b\tc\n\nd"},
		{"xmp", "<xmp>a <b>c</xmp>", "a <b>c"},
		{"quotation", `<q>a</q>`, "“a”"},
		{"left out", `a<script>if (a<b) x("</p>")</script><style>p{}</style><template>t<template>u</template>v</template>` +
			`<noscript><p>n</p></noscript><svg><text>s</text></svg><iframe>f</iframe><object>o<object>p</object>q</object>b`, "ab"},
		{"form values", `a<input value=b><textarea>c</textarea><select><option>d</select> <button>e</button><datalist><option>f</datalist>`, "a e"},
		{"pictures", `a<img src=x alt="left out">b`, "ab"},
		{"comments", `a<!-- <p>x</p> -->b<!-->c<!--->d<!x>e<?php f ?>g</ h>i`, "abcdegi"},
		{"cdata in html", `a<![CDATA[b<p>c]]>d`, "ac]]>d"},
		{"unclosed comment", `a<!-- b`, "a"},
		{"unclosed tag", `a<p title="b`, "a"},
		{"unclosed script", `a<script>b`, "a"},
		{"attribute with markup", `<p title="<b>x</b>" data-x='>'>a</p>`, "a"},
		{"svg left by html", `<svg><text>s</text><p>a`, "a"},
		{"svg with html", `<svg><foreignObject><p>x</p></foreignObject><text>y</text></svg>a`, "a"},
		{"svg with raw names", `<svg><style><p>a`, "a"},
		{"svg closed", `<svg/>a`, "a"},
		{"select left", `<select><option>x<input>a`, "a"},
		{"xhtml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head>` +
			`<body><a id="x"/><p>a<![CDATA[<b>]]></p><div hidden="hidden"/>c</body></html>`, "a<b>\n\nc"},
		{"xhtml prefix", `<?xml version="1.0"?><h:html><h:script>x</h:script><h:p>a</h:p>b</h:html>`, "a\n\nb"},
		{"after body", `<body>a</body></html>b`, "ab"},
		{"stray end tags", `</div></p></li></table>a</b>b`, "ab"},
		{"misnested", `<b>a<p>b</b>c</p>d`, "a\n\nbc\n\nd"},
		{"nothing", ``, ""},
		{"invalid utf-8", "<meta charset=utf-8>a\xff\xfeb", "a\uFFFD\uFFFDb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := htmlPage(t, c.in, "")
			if p.Text != c.want || len(p.Hidden) != 0 {
				t.Errorf("got %q, hidden %v; want %q", p.Text, p.Hidden, c.want)
			}
		})
	}
}

func TestHTMLHiddenText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"attribute", `a<p hidden>b</p>c`, "a\n\n[invisible:b]\n\nc"},
		{"aria-hidden is shown", `a<p aria-hidden=true>b</p>`, "a\n\nb"},
		{"display", `a<span style="x:y; DISPLAY : None !important">b</span>c`, "a[invisible:b]c"},
		{"visibility", `<div style="visibility:hidden">a<b style="visibility:visible">b</b></div>`, "[invisible:a]b"},
		{"opacity", `<div style="opacity:0">a</div><div style="opacity:.5">b</div><i style="opacity:0.0%">c</i>`, "[white:a]\nb\n[white:c]"},
		{"tiny", `<p style="font-size:1px">a<b style="font-size:12pt">b</b><p style="font-size:0">c<p style="font:italic 1px/2 serif">d`, "[tiny:a]b\n\n[tiny:c]\n\n[tiny:d]"},
		{"tiny by parts", `<div style="font-size:10%">a<span style="font-size:.5em">b</span></div>`, "[tiny:ab]"},
		{"small is not tiny", `<div style="font-size:2px">a</div><small>b</small>`, "a\nb"},
		{"white", `<p style="color:white">a<p style="color:#FFF">b<p style="color:rgb(255, 255,255)">c<p style="color:hsl(0 0% 100%)">d`,
			"[white:a]\n\n[white:b]\n\n[white:c]\n\n[white:d]"},
		{"nearly white", `<p style="color:#fdfdfe">a<p style="color:#ccc">b`, "[white:a]\n\nb"},
		{"see-through", `<p style="color:transparent">a<p style="color:rgba(0,0,0,0)">b<p style="color:#0000">c`, "[white:a]\n\n[white:b]\n\n[white:c]"},
		{"on its ground", `<div style="background:#123456"><p style="color:white">a<p style="color:#123456">b</div>`, "a\n\n[white:b]"},
		{"on a picture", `<div style="background:url(x.png)"><p style="color:white">a</div>`, "a"},
		{"white by attribute", `<font color="ffffff">a</font><body bgcolor=black text=white>b<font color=black>c</font>`, "[white:a]\nb[white:c]"},
		{"link in white text", `<p style="color:white">a <a href=x>b</a> <a>c</a>`, "[white:a] b[white: c]"},
		{"off page", `<p style="position:absolute; left:-9999px">a</p><p style="text-indent:-100em">b</p><p style="position:fixed;top:-100vh">c</p>`,
			"[off_page:a]\n\n[off_page:b]\n\n[off_page:c]"},
		{"a little off", `<p style="position:absolute; left:-20px">a</p><p style="left:-9999px">b</p>`, "a\n\nb"},
		{"clipped", `<p style="position:absolute;clip:rect(1px, 1px, 1px, 1px)">a</p><p style="height:0;overflow:hidden">b</p>`, "[off_page:a]\n\n[off_page:b]"},
		{"rules", `<style>.a, #b, i, p.c { display: none } /* .d{display:none} */ .e .f{display:none}</style>
			<b class="x A">1</b><b id=b>2</b><i>3</i><p class=c>4</p><b class=c>5</b><b class=d>6</b><b class=f>7</b>`,
			"[invisible:123]\n\n[invisible:4]\n\n567"},
		{"rules behind the text", `<b class=a>1</b><style>.a{color:#fff}</style>`, "[white:1]"},
		{"rules in a comment", `<!-- <style>p{display:none}</style> --><p>a`, "a"},
		{"stronger rules", `<style>p{display:none} .s{display:block} #x{display:none} .w{display:none!important}</style>
			<p class=s>a<p class=s id=x>b<p class=s id=x style="display:block">c<p class=w style="display:block">d`, "a\n\n[invisible:b]\n\nc\n\n[invisible:d]"},
		{"later rules", `<style>.a{display:none}.a{display:block}</style><p class=a>a`, "a"},
		{"invalid values", `<p style="display:none;display:nothing">a<p style="color:white;color:nocolour">b`, "[invisible:a]\n\n[white:b]"},
		{"escaped", `<p style="d\69splay:n\06f ne">a`, "[invisible:a]"},
		{"print rules", `<style>@media print{p{display:none}}@media screen{i{display:none}}@font-face{x:y}@import "a";u{display:none}</style><p>a <i>b</i> <u>c</u>`, "a[invisible: b c]"},
		{"broken css", `<style>p{display:none</style><p>a</p><style>}}}{{ i{display:none}</style>`, "[invisible:a]"},
		{"implied ends", `<p hidden>a<p>b<ul><li hidden>c<li>d</ul><table><tr hidden><td>e<tr><td hidden>f<td>g</table>`,
			"[invisible:a]\n\nb\n\n[invisible:- c]\n- d\n\n[invisible:e]\n[invisible:f]\tg"},
		{"end tag over a block", `<span><div hidden></span>a</div>b`, "[invisible:a]\nb"},
		{"cell keeps its block", `<div><table><tr><td hidden></div>a</table></div>b`, "[invisible:a]\n\nb"},
		{"dialog", `<dialog>a</dialog><dialog open>b</dialog>`, "[invisible:a]\nb"},
		{"body", `<body style="display:none">a</body>b`, "[invisible:ab]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := marked(htmlPage(t, c.in, "")); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestHTMLEncodings(t *testing.T) {
	t.Parallel()
	const text = "Die Prüfung der Schweißnähte übernahm das Werk für größere Ventile in Köln. Änderungen folgen später."
	latin := strings.NewReplacer("ü", "\xfc", "ß", "\xdf", "ä", "\xe4", "ö", "\xf6", "Ä", "\xc4").Replace(text)
	utf16 := func(s string, big bool) string {
		var b strings.Builder
		for _, r := range s {
			if big {
				b.WriteString(string([]byte{byte(r >> 8), byte(r)}))
			} else {
				b.WriteString(string([]byte{byte(r), byte(r >> 8)}))
			}
		}
		return b.String()
	}
	for _, c := range []struct{ name, in, declared string }{
		{"utf-8", "<p>" + text, ""},
		{"utf-8 with a mark, declared otherwise", "\xef\xbb\xbf<p>" + text, "iso-8859-1"},
		{"declared before meta", "<meta charset=utf-8><p>" + latin, "iso-8859-1"},
		{"meta", "<!-- " + strings.Repeat("x", 2000) + " --><meta charset=windows-1252><p>" + latin, ""},
		{"http-equiv", `<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=ISO-8859-15"><p>` + latin, ""},
		{"xml declaration", `<?xml version="1.0" encoding="ISO-8859-1"?><p>` + latin, ""},
		{"guess", "<p>" + latin, ""},
		{"unknown name", "<p>" + latin, "x-nothing"},
		{"utf-16 with a mark", "\xff\xfe" + utf16("<p>"+text, false), "utf-8"},
		{"utf-16 big endian", utf16("<p>"+text, true), ""},
		{"utf-16 in meta", "<meta charset=utf-16><p>" + text, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := htmlPage(t, c.in, c.declared).Text; got != text {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Thirty times the length takes a race detector half a minute, and goes the same way. It is longer than what other tests read.
func init() { maxToken = 1 << 20 }

func TestHTMLLimits(t *testing.T) {
	t.Parallel()
	read := func(content string, room int64) (p page.Page, truncated bool, err error) {
		truncated, err = ReadHTML(strings.NewReader(content), int64(len(content)), "", page.Limits{TextBytes: room},
			func(q page.Page) error { p = q; return nil })
		return
	}
	if p, truncated, err := read("<p>abc<p>def", 6); p.Text != "abc\n\nd" || !truncated || err != nil {
		t.Errorf("%q, truncated %t, %v", p.Text, truncated, err)
	}
	if p, truncated, err := read("<p>abc<p>def", 8); p.Text != "abc\n\ndef" || truncated || err != nil {
		t.Errorf("%q, truncated %t, %v", p.Text, truncated, err)
	}
	if p, truncated, err := read("a<!--"+strings.Repeat("x", maxToken)+"-->b", 8); p.Text != "a" || !truncated || err != nil {
		t.Errorf("long comment: %q, truncated %t, %v", p.Text, truncated, err)
	}
	if _, _, err := read("<p>"+strings.Repeat("\x01\x02a", 1000), 100); !errors.Is(err, page.ErrBroken) {
		t.Errorf("not text: %v", err)
	}
	stop := errors.New("stop")
	if _, err := ReadHTML(strings.NewReader("a"), 1, "", roomy, func(page.Page) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("emit's error: %v", err)
	}
}
