package e2e

import "testing"

// The documentation in a real browser: every page, its search, copying, the reference and the sandbox in it.
func TestBrowserDocs(t *testing.T) {
	t.Parallel()
	start(t, options{}).visit(t, "docs")
}
