// Package e2e tests the service as its users meet it: the real binary, real HTTP, real clamd, real Tesseract, real files.
// Every test starts its own service in its own folder; all of them share one clamd, which is told apart from the managed
// one by the tests that are about it.
package e2e
