package custody

import "io"

// Content is random access to the plaintext of an upload; Close it.
type Content interface {
	io.ReaderAt
	io.Closer
	Size() int64 // bytes
}

// Refusal is a gate's verdict on content: the upload is REJECTED. Message is a sentence for a person, without content.
type Refusal struct {
	Code, Message string
	Gate          GateName // set where the gates run inside a request
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// NoAnswer says that an engine gave no verdict: never a pass, to be tried again until the gate's deadline.
type NoAnswer struct {
	Code    string
	Message string // a sentence for a person, without content
	Cause   error  // for the log
}

func (n *NoAnswer) Error() string {
	if n.Cause != nil {
		return n.Code + ": " + n.Message + ": " + n.Cause.Error()
	}
	return n.Code + ": " + n.Message
}

// Unwrap gives the cause.
func (n *NoAnswer) Unwrap() error { return n.Cause }
