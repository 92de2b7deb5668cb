// Package extract turns a submitted document into text, page by page, without trusting a byte of it.
//
//	            service (parent)                                  its own binary, re-executed
//	Extract ── detect the media type
//	   │
//	   ├── start ───────────────────────────────────────────▶ worker extract <format>
//	   │                                                        load the engine (pdfium from the cache)
//	   │                                                        close the cage
//	   ├── job, then the content ──── stdin ─────────────────▶ read it: pages of text, pages that are pictures
//	   │◀── page count, pages, pictures, end ─── stdout ──────┘
//	   │
//	   └── each picture ──── start ──────────────────────────▶ worker ocr
//	                                                            close the cage, become tesseract
//	       ◀── text ───────────────────────── stdout ──────────┘
//
// DOC, XLS and PPT take a way of their own: worker convert becomes LibreOffice, which works in a room, a private folder in memory.
// What it leaves there is read as any other document.
//
// The words used here:
//
//   - A worker is this binary in a cage: no network, no files, no other processes, bounded memory and CPU time.
//     It has its pipes and nothing else (LibreOffice: its room). It closes the cage before it reads the first untrusted byte, and ends
//     when it cannot close it.
//   - A format is one kind of content that a worker can read; each has files of its own (pdf*.go, format_*.go, picture_*.go).
//   - A page is text with the place it came from: the text layer, or OCR of a picture.
//   - A Refusal says that the content itself cannot be accepted. Every other error means that extraction could
//     not finish and may be tried again.
//
// The parent holds no document in memory: content and pictures stream through it. It checks every number, size
// and text that a worker sends.
//
// Source: architecture, "Engines": extraction worker; contract decisions, gate 4 "extraction". Linux only.
package extract
