//go:build !misbehaving

package extract

// A release knows no misbehaviour: documents cannot ask for any.
func (w *worker) misbehave(string) error { return nil }

func misbehaves([]byte) bool { return false }

func (p *process) disturb() error { return nil }

func shortened(l Limits) Limits { return l }
