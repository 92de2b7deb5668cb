package sandbox

import (
	"fmt"
	"unicode/utf8"

	"github.com/accession/accession/internal/custody"
)

// StatusOK is the status of every echo, alone or in a batch. (Section 2.7.)
const StatusOK = "sandbox_ok"

// Echo is the input again. (Section 2.7.)
type Echo struct {
	Status               string // StatusOK
	ProductionDataAccess bool   // always false
	Persisted            bool   // always false
	Echo                 string // the input, byte for byte
	CredentialID         string
}

// Operation is one input of a batch.
type Operation struct {
	Input string // at most MaxInputCharacters; one that is not given is empty
}

// Batch is the inputs again, one result per operation, in their order. (Contract decisions, "Responses the specification
// leaves open".)
type Batch struct {
	Status               string // StatusOK
	ProductionDataAccess bool   // always false
	Persisted            bool   // always false
	Results              []Result
}

// Result of one operation of a batch.
type Result struct {
	Index  int    // of the operation, from 0
	Status string // StatusOK
	Echo   string // the operation's input, byte for byte
}

// Echo gives input back to the holder of the credential that Authenticate named. Errors: authentication_required without
// one; invalid_request with details.fields for an input that is not UTF-8 or has more than MaxInputCharacters. (Section 4.2.)
func (s *Service) Echo(credentialID, input string) (Echo, error) {
	if credentialID == "" {
		return Echo{}, required()
	}
	if reason := unfit(input); reason != "" {
		return Echo{}, refuse(field("/input", reason))
	}
	return Echo{Status: StatusOK, Echo: input, CredentialID: credentialID}, nil
}

// Batch echoes MinOperations to MaxOperations operations; one that is not fit refuses the whole batch. Errors as those of
// Echo; details.fields names every operation that must change. (Section 4.2.)
func (s *Service) Batch(credentialID string, ops []Operation) (Batch, error) {
	if credentialID == "" {
		return Batch{}, required()
	}
	if len(ops) < MinOperations || len(ops) > MaxOperations {
		return Batch{}, refuse(field("/operations", fmt.Sprintf("expected %d to %d operations", MinOperations, MaxOperations)))
	}
	b := Batch{Status: StatusOK, Results: make([]Result, len(ops))}
	var wrong []map[string]string
	for i, op := range ops {
		if reason := unfit(op.Input); reason != "" {
			wrong = append(wrong, field(fmt.Sprintf("/operations/%d/input", i), reason))
		}
		b.Results[i] = Result{Index: i, Status: StatusOK, Echo: op.Input}
	}
	if wrong != nil {
		return Batch{}, refuse(wrong...)
	}
	return b, nil
}

// unfit says why input cannot be echoed; empty when it can.
func unfit(input string) string {
	switch {
	case !utf8.ValidString(input): // JSON would answer other bytes than came in
		return "expected UTF-8"
	case utf8.RuneCountInString(input) > MaxInputCharacters:
		return fmt.Sprintf("expected at most %d characters (Unicode code points)", MaxInputCharacters)
	}
	return ""
}

func field(path, reason string) map[string]string {
	return map[string]string{"path": path, "reason": reason}
}

// refuse names what must change, and holds nothing of what was sent. (Contract decisions, "Errors".)
func refuse(fields ...map[string]string) error {
	return custody.Errorf(custody.CodeInvalidRequest, "the request is not valid; see details.fields").With("fields", fields)
}
