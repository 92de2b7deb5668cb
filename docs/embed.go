// Package docs is the documentation, as Markdown. internal/manual serves it as pages.
package docs

import "embed"

// Files are the pages, by file name.
//
//go:embed *.md
var Files embed.FS
