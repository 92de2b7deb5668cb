package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/accession/accession/client"
)

// The exit codes, as documented in the help.
const (
	exitOK            = 0
	exitFailure       = 1
	exitUsage         = 2
	exitNotAuthorised = 3
	exitNotFound      = 4
	exitConflict      = 5
	exitRejected      = 6
	exitUnavailable   = 7
	exitInterrupted   = 130
)

// usageError is a command line that has to be written differently.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// interruptedError says what Ctrl-C left behind.
type interruptedError struct{ next string }

func (e *interruptedError) Error() string { return "interrupted" }

func interrupted(err error) error {
	var already *interruptedError
	if errors.As(err, &already) || !errors.Is(err, context.Canceled) {
		return err
	}
	return &interruptedError{}
}

// verdictError is an upload that ended other than READY.
type verdictError struct{ status *client.UploadStatus }

func (e *verdictError) Error() string {
	text := fmt.Sprintf("upload %s is %s", e.status.UploadID, e.status.Status)
	if failure := e.status.Failure; failure != nil {
		text += fmt.Sprintf(": gate %s: %s (%s)", failure.Gate, failure.Message, failure.Code)
	}
	if e.status.Response.RequestID != "" {
		text += ", request_id " + e.status.Response.RequestID
	}
	return text
}

// refusedError is a re-scan that refused stored uploads.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// nothingFoundError is a search without a result.
type nothingFoundError struct{ text string }

func (e *nothingFoundError) Error() string { return e.text }

// adviceError adds the next step to an error.
type adviceError struct {
	err  error
	next string
}

func (e *adviceError) Error() string { return e.err.Error() }
func (e *adviceError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var usage *usageError
	var stopped *interruptedError
	var verdict *verdictError
	var nothing *nothingFoundError
	var refused *refusedError
	var several *severalError
	var refusal *client.Error
	var network *client.NetworkError
	switch {
	case errors.As(err, &stopped):
		return exitInterrupted
	case errors.As(err, &several):
		return several.code
	case errors.As(err, &usage), errors.Is(err, client.ErrNoCredential):
		return exitUsage
	case errors.As(err, &verdict):
		if verdict.status.Status == client.StatusRejected || verdict.status.Status == client.StatusFailed {
			return exitRejected
		}
		return exitFailure
	case errors.As(err, &refused):
		return exitRejected
	case errors.As(err, &nothing):
		return exitNotFound
	case errors.As(err, &network):
		return exitUnavailable
	case errors.As(err, &refusal):
		switch {
		case refusal.Status == http.StatusUnauthorized, refusal.Status == http.StatusForbidden:
			return exitNotAuthorised
		case refusal.Status == http.StatusNotFound, refusal.Status == http.StatusGone:
			return exitNotFound
		case refusal.Status == http.StatusConflict:
			return exitConflict
		case client.Retryable(err):
			return exitUnavailable
		}
	}
	return exitFailure
}

// fail prints an error, what the service said about single fields, and the next step.
func (a *App) fail(err error) { a.report("", err) }

// report is fail for one of several things, which about names.
func (a *App) report(about string, err error) {
	fmt.Fprintf(a.Stderr, "%s %s%s\n", a.paint(a.StderrIsTerminal, red, "error:"), oneLine(about), printable(err.Error()))
	var refusal *client.Error
	if errors.As(err, &refusal) {
		for _, field := range refusal.Fields() {
			fmt.Fprintf(a.Stderr, "  %s: %s\n", printable(field.Path), printable(field.Reason))
		}
	}
	if next := nextStep(err); next != "" {
		fmt.Fprintf(a.Stderr, "next: %s\n", printable(next))
	}
}

// speaksHTTP says whether HTTPS was spoken to a service without TLS. The standard library has no value for it, only words.
func speaksHTTP(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// nextStep is what a person can do about an error; empty where the error says it.
func nextStep(err error) string {
	var advice *adviceError
	if errors.As(err, &advice) {
		return advice.next
	}
	var stopped *interruptedError
	if errors.As(err, &stopped) {
		return stopped.next
	}
	var several *severalError
	if errors.As(err, &several) {
		return several.next
	}
	var verdict *verdictError
	if errors.As(err, &verdict) {
		switch verdict.status.Status {
		case client.StatusRejected:
			return "remove what the gate found and upload the file again; accession withdraw deletes this upload"
		case client.StatusFailed:
			return "an operator can resume this upload; give them the upload id"
		}
		return "upload the file again"
	}
	var refused *refusedError
	if errors.As(err, &refused) {
		return "their context is withdrawn; accession withdraw deletes them"
	}
	var network *client.NetworkError
	if errors.As(err, &network) {
		if speaksHTTP(err) {
			return "what answers there speaks no TLS: for a service on this computer write http:// in --server, " + envServer + " or the profile; else ask the operator for its https address"
		}
		return "check that the service runs there, and --server, " + envServer + " or the profile; accession doctor client looks at the way there"
	}
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	switch {
	case refusal.Code == "quota_exceeded":
		return "see accession quota; withdraw an upload or ask the operator for more"
	case refusal.Code == "credential_not_bound":
		return "use a credential of this organization with the role " + client.RoleUpload + "; check --org and " + envToken
	case refusal.Status == http.StatusUnauthorized:
		return "check the token in " + envToken + " or --token-file (" + envAdminToken + " or --admin-token-file for admins); a revoked or expired one has to be issued again; accession doctor client tries what a profile holds"
	case refusal.Status == http.StatusForbidden:
		return "the credential may not do this: check --org and the credential's role; reading a context takes " + client.RoleAIReader + ", uploading " + client.RoleUpload
	case refusal.Code == "context_not_ready":
		return "accession status shows where the upload stands; only a READY one has a context"
	case refusal.Code == "receipt_not_found":
		return "check the receipt id, which accession withdraw printed, and --org"
	case refusal.Code == "route_not_found":
		return "check the path in --server, " + envServer + " or the profile; accession doctor client looks at the way there"
	case refusal.Status == http.StatusNotFound:
		return "check the upload id and --org; a credential sees its own organization only"
	case refusal.Status == http.StatusTooManyRequests && refusal.RetryAfter > 0:
		return "try again in " + refusal.RetryAfter.Round(time.Second).String()
	case refusal.Status >= 300 && refusal.Status < 400:
		return "the address redirects; give the final one with --server or " + envServer
	case client.Retryable(err):
		return "try again later; if it goes on, give the operator the request_id"
	case strings.HasPrefix(refusal.Code, "idempotency"):
		return "run the command again"
	case refusal.Status == http.StatusGone:
		return "it is deleted for good; accession status shows when"
	case refusal.Status == http.StatusConflict:
		return "accession status shows what the service holds; what it holds goes before what this command wanted"
	case refusal.Status >= 400 && refusal.Status < 500:
		return "change what the message names; if it names nothing, give the operator the request_id"
	}
	return ""
}
