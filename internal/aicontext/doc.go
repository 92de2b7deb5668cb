// Package aicontext makes and serves the bounded context that an AI reader gets of a document.
//
//	pages ──Sanitize, unwrap──▶ page text ──split──▶ sentences ──rank──▶ best first
//	  │                                                                    │
//	  └──Signals──▶ counts and positions        Summarize ◀───────────────┤   gate controlled_summary
//	                                            Distill ◀─────────────────┘   gate ai_context
//
// Summarize and Distill are pure: no I/O, no clock, no chance, so that the same document gives the same bytes and a
// context's SHA-256 can be made again. Both are bounded in time, memory and output whatever the text is.
//
// Words used here: a page text is what PageText makes of a page; a sentence is the smallest piece that is ranked
// (headings, list items and table rows count as sentences that are not prose); a summary is a few whole sentences; an
// excerpt is a run of neighbouring sentences on one page; a signal is a type, a class, a count and positions of
// something that a reader should know about the text. Offsets are bytes into the page text. Everything served is
// verbatim text of the submitted document: unverified, and untrusted.
package aicontext
