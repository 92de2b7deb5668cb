package e2e

import "testing"

// A customer's text: handed in once whatever happens, read back as a reader gets it, corrected, refused, withdrawn.
func TestBrowserCustomer(t *testing.T) {
	t.Parallel()
	start(t, options{}).visit(t, "customer")
}
