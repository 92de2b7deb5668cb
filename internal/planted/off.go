//go:build !planted

package planted

// Bug tells whether the bug of that name is at work. In this build none ever is.
func Bug(string) bool { return false }
