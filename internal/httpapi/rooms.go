package httpapi

import (
	"context"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
	"github.com/accession/accession/internal/sandbox"
)

// Every method authorizes its caller itself and returns a *custody.Error for what a client may see; anything else
// becomes internal_error.

// Intake takes uploads into custody. (Section 4.6.)
type Intake interface {
	// Initiate renders a custody.Upload.
	Initiate(context.Context, custody.Caller, custody.Reservation, custody.Idempotency) (custody.Answer, error)
	// AcceptPart renders a custody.AcceptedPart; it hashes the body itself, so RequestHash comes empty.
	AcceptPart(context.Context, custody.Caller, custody.IncomingPart, custody.Idempotency) (custody.Answer, error)
	// Complete renders a custody.Completed.
	Complete(context.Context, custody.Caller, custody.Completion, custody.Idempotency) (custody.Answer, error)
	Status(ctx context.Context, c custody.Caller, orgID, uploadID string) (custody.UploadState, error)
	// AwaitChange returns the state once it differs from sequence and nextPart, or unchanged when ctx's deadline passes.
	AwaitChange(ctx context.Context, c custody.Caller, orgID, uploadID string, sequence int64, nextPart int) (custody.UploadState, error)
	Quota(ctx context.Context, c custody.Caller, orgID string) (custody.Quota, error)
	Submissions
}

// Withdrawal deletes an upload for good. (Section 4.6, withdraw.)
type Withdrawal interface {
	// Withdraw renders a custody.Receipt.
	Withdraw(context.Context, custody.Caller, custody.Withdrawal, custody.Idempotency) (custody.Answer, error)
	// Receipt has its signed form with it.
	Receipt(ctx context.Context, c custody.Caller, orgID, receiptID string) (custody.Receipt, error)
	Retentions
}

// Contexts serves bounded context and the evidence of it. (Section 4.7.)
type Contexts interface {
	Serve(ctx context.Context, c custody.Caller, orgID, uploadID, surface string) (custody.Serving, error)
	// Records returns the position to continue before; 0 when there are no more.
	Records(context.Context, custody.Caller, custody.RecordQuery) (records []custody.Record, next int64, err error)
	CanaryFinder
}

// Tenants knows credentials. (Sections 4.4 and 5.)
type Tenants interface {
	Authenticate(ctx context.Context, token string) (custody.Caller, error)
	// Issue renders a custody.Credential and returns its token beside the answer, on a replay too.
	Issue(context.Context, custody.Caller, custody.CredentialRequest, custody.Idempotency) (custody.Answer, string, error)
	CredentialAdmin
	OrganizationAdmin
	TokenServer
	Sessions
}

// Rescans scans stored uploads again.
type Rescans interface {
	// Queue renders a custody.QueuedRescans.
	Queue(context.Context, custody.Caller, custody.RescanScope, custody.Idempotency) (custody.Answer, error)
	State(ctx context.Context, c custody.Caller, scope custody.RescanScope, since time.Time) (custody.RescanState, error)
}

// Upkeep keeps custody whole.
type Upkeep interface {
	// Check renders a custody.StorageReport.
	Check(context.Context, custody.Caller, custody.StorageCheck, custody.Idempotency) (custody.Answer, error)
	// Resume renders a custody.Resumed.
	Resume(context.Context, custody.Caller, custody.Resumption, custody.Idempotency) (custody.Answer, error)
	InstallationState(context.Context, custody.Caller) (custody.InstallationState, error)
}

// Sandbox lets a stranger try the service; it keeps nothing. (Section 4.2.)
type Sandbox interface {
	Info(at sandbox.Endpoints, includeLimits bool) sandbox.Info
	KeyInfo(at sandbox.Endpoints, includeLimits bool) sandbox.KeyInfo
	Issue(email string) sandbox.Credential
	Authenticate(token string) (credentialID string, err error)
	Echo(credentialID, input string) (sandbox.Echo, error)
	Batch(credentialID string, ops []sandbox.Operation) (sandbox.Batch, error)
}

// Limiter says who asks too often. (Section 8.)
type Limiter interface {
	// Take counts one request of who; limits is false where the class has no rate.
	Take(ctx context.Context, class ratelimit.Class, who string) (v ratelimit.Verdict, limits bool, err error)
}

// Requests counts what was asked and answered. The operation is empty where none was reached; in and out are bytes of bodies.
// Begun precedes Request where an operation is reached.
type Requests interface {
	Begun(operation string)
	Request(operation string, status int, in, out int64, took time.Duration)
}

// Traces follows requests through the service. sent is the caller's valid traceparent, or empty; own is the one of the answer.
// What follows the request is done under the context that it gives. ended must be called once; a method that nobody knows and
// an operation that was not reached are empty.
type Traces interface {
	Request(ctx context.Context, requestID, sent string) (_ context.Context, own string, ended func(method, route, operation string, status int, code custody.Code))
}

// Readiness tells whether a part of the service can work right now; nil means yes.
type Readiness interface {
	Ready(context.Context) error
}

// Check is a named Readiness; the name is public.
type Check struct {
	Name string
	Readiness
	Informs bool // it is shown, and the service is ready without it
}
