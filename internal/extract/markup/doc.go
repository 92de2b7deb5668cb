// Package markup reads HTML, XHTML, Markdown, RTF and EPUB into pages of text: what a person reads, and where in it lies
// what nobody sees. Nothing of the markup itself comes out.
//
// Source: contract decisions, gate 4 "extraction"; the shape of a reader is that of package page.
package markup
