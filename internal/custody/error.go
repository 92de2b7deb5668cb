package custody

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Code names an error for programs; clients may rely on it. Every code stands in Codes, once.
type Code string

// CodeInfo is one row of the error catalogue.
type CodeInfo struct {
	Code    Code
	Status  int    // HTTP status
	Meaning string // what happened
	Advice  string // what to change
}

// Codes of the service. (Section 7; contract decisions, "Errors".)
const (
	CodeInvalidRequest        Code = "invalid_request"
	CodeConsentInvalid        Code = "consent_invalid"
	CodeIdempotencyKeyInvalid Code = "idempotency_key_invalid"
	CodePartLengthInvalid     Code = "part_length_invalid"
	CodeContentDigestMismatch Code = "content_digest_mismatch"
	CodeLengthRequired        Code = "length_required"
	CodeVerificationClaim     Code = "verification_claim_forbidden"
	CodeContentRefused        Code = "content_refused"

	CodeAuthenticationRequired Code = "authentication_required"
	CodeCredentialInvalid      Code = "credential_invalid"
	CodeCredentialNotBound     Code = "credential_not_bound"
	CodeAccessDenied           Code = "access_denied"
	CodeInsufficientScope      Code = "insufficient_scope"
	CodeVisibilityDenied       Code = "visibility_denied"
	CodeWorkspaceAccess        Code = "workspace_access_required"

	CodeUploadNotFound   Code = "upload_not_found"
	CodeContextNotReady  Code = "context_not_ready"
	CodeRouteNotFound    Code = "route_not_found"
	CodeMethodNotAllowed Code = "method_not_allowed"
	CodeNotAcceptable    Code = "not_acceptable"

	CodeCredentialNotFound   Code = "credential_not_found"
	CodeCredentialNotActive  Code = "credential_not_active"
	CodeSigningKeyNotFound   Code = "signing_key_not_found"
	CodeSigningKeyInUse      Code = "signing_key_in_use"
	CodeCanaryNotFound       Code = "canary_not_found"
	CodeReceiptNotFound      Code = "receipt_not_found"
	CodeWebhookNotFound      Code = "webhook_not_found"
	CodeOrganizationNotFound Code = "organization_not_found"

	CodeIdempotencyConflict    Code = "idempotency_conflict"
	CodeIdempotencyInProgress  Code = "idempotency_in_progress"
	CodeQuotaExceeded          Code = "quota_exceeded"
	CodePartOutOfOrder         Code = "part_out_of_order"
	CodePartConflict           Code = "part_conflict"
	CodeUploadIdentityConflict Code = "upload_identity_conflict"
	CodeUploadNotReceiving     Code = "upload_not_receiving"
	CodeUploadNotFailed        Code = "upload_not_failed"
	CodeReservationExpired     Code = "reservation_expired"
	CodePartLedgerMismatch     Code = "part_ledger_mismatch"
	CodeDigestMismatch         Code = "digest_mismatch"

	CodeBodyTooLarge         Code = "body_too_large"
	CodeHeadersTooLarge      Code = "headers_too_large"
	CodeMediaTypeUnsupported Code = "media_type_unsupported"
	CodeRequestTimeout       Code = "request_timeout"

	CodeRateLimited          Code = "rate_limited"
	CodeInternal             Code = "internal_error"
	CodeDeletionNotConfirmed Code = "deletion_not_confirmed"
	CodeUnavailable          Code = "service_unavailable"
	CodeStorageFull          Code = "storage_full"
)

// Codes is the error catalogue: one row per code, published as the enum of the error object.
var Codes = []CodeInfo{
	{CodeInvalidRequest, 400, "The request does not have the form the contract asks for.", "Change the fields named in details.fields."},
	{CodeConsentInvalid, 400, "Consent is missing, incomplete or not accepted.", "Send the whole consent object with accepted true."},
	{CodeIdempotencyKeyInvalid, 400, "The Idempotency-Key header is missing or malformed.", "Send 8 to 128 visible ASCII characters."},
	{CodePartLengthInvalid, 400, "The part does not have the length this part must have.", "Send exactly details.expected_bytes."},
	{CodeContentDigestMismatch, 400, "The body does not match the Content-Digest header.", "Send the part again."},
	{CodeVerificationClaim, 400, "The submission claims that it is verified, certified, endorsed or ranked.", "Remove the claim named in details; what an organization says of itself is fine."},
	{CodeContentRefused, 400, "A gate refused the content of a customer upload.", "See details.gate and details.gate_code."},
	{CodeAuthenticationRequired, 401, "The operation needs a credential.", "Send it in x-api-key, or as a Bearer token."},
	{CodeCredentialInvalid, 401, "The credential is unknown, malformed, expired or revoked.", "Ask the administrator for a new one; do not try another."},
	{CodeCredentialNotBound, 401, "The credential is not an upload credential of this organization.", "Use the solution_company_upload credential of the organization in the path."},
	{CodeAccessDenied, 403, "The credential may not do this for this organization.", "Do not try another credential or organization."},
	{CodeInsufficientScope, 403, "The credential lacks a scope.", "Ask the administrator for the scope in details.required_scope."},
	{CodeVisibilityDenied, 403, "The upload's visibility does not allow AI context.", "Nothing to change: the uploader chose it."},
	{CodeWorkspaceAccess, 403, "The workspace boundary blocks this write.", "The customer must grant workspace access, or upload for the organization in the path."},
	{CodeUploadNotFound, 404, "There is no such upload for this credential.", "Check the organization and upload ids."},
	{CodeContextNotReady, 404, "The upload has no AI context to serve.", "Poll the status until READY; other terminal statuses never have one."},
	{CodeCredentialNotFound, 404, "There is no such credential.", "Check the credential id; list the credentials."},
	{CodeSigningKeyNotFound, 404, "There is no such signing key, or it is retired.", "List the signing keys."},
	{CodeOrganizationNotFound, 404, "There is no such organization.", "Check the organization id; an organization begins with its first credential."},
	{CodeReceiptNotFound, 404, "There is no such withdrawal receipt for this credential.", "Use the withdrawal_receipt_id of the withdrawal's answer and a credential of its organization, or the admin token."},
	{CodeWebhookNotFound, 404, "The organization has no webhook.", "Set one first."},
	{CodeCanaryNotFound, 404, "No serving carries this canary.", "Send it whole: accession-canary-rec_ and 26 characters."},
	{CodeRouteNotFound, 404, "There is no such path.", "See the published contract."},
	{CodeMethodNotAllowed, 405, "The path does not take this method.", "See the Allow header."},
	{CodeNotAcceptable, 406, "The answer cannot have the form the Accept header asks for.", "Accept application/json."},
	{CodeRequestTimeout, 408, "The body did not arrive in time.", "Send it again; resume at next_part_number."},
	{CodeIdempotencyConflict, 409, "The Idempotency-Key was used for a different request.", "Use a new key for a new request."},
	{CodeIdempotencyInProgress, 409, "The first request with this Idempotency-Key is still running.", "Repeat it after Retry-After."},
	{CodeQuotaExceeded, 409, "The organization's storage allowance does not hold this upload.", "Withdraw uploads or ask for a larger allowance; see details."},
	{CodePartOutOfOrder, 409, "Parts are accepted in order, one after the other.", "Send details.next_part_number next."},
	{CodePartConflict, 409, "This part was accepted with other bytes.", "Withdraw the upload and start again if the file changed."},
	{CodeUploadIdentityConflict, 409, "The upload ids of the request differ.", "Name the same upload in path, query and body."},
	{CodeUploadNotReceiving, 409, "The upload no longer takes parts.", "Poll its status."},
	{CodeUploadNotFailed, 409, "Only a FAILED upload can be resumed.", "See its status."},
	{CodeCredentialNotActive, 409, "The credential is revoked or expired.", "Issue a new credential instead."},
	{CodeSigningKeyInUse, 409, "The signing key still signs, or something depends on it.", "Rotate first, or wait; see the message."},
	{CodeReservationExpired, 409, "The reservation lapsed before the upload was complete.", "Initiate a new upload."},
	{CodePartLedgerMismatch, 409, "The parts named do not match those accepted.", "Compare with details; send what is missing."},
	{CodeDigestMismatch, 409, "The bytes received do not have the declared SHA-256.", "Withdraw the upload and send the file again."},
	{CodeLengthRequired, 411, "The body needs a Content-Length.", "Send Content-Length; chunked parts are not accepted."},
	{CodeBodyTooLarge, 413, "The body is larger than this operation takes.", "Send at most details.limit_bytes."},
	{CodeMediaTypeUnsupported, 415, "The body's media type is not the one this operation takes.", "Send the Content-Type in details.accepted."},
	{CodeRateLimited, 429, "The rate limit is reached.", "Repeat after Retry-After; do not try another credential or organization."},
	{CodeHeadersTooLarge, 431, "The headers are larger than 32 KiB.", "Send fewer or shorter headers."},
	{CodeInternal, 500, "The service failed; nothing was acknowledged.", "Repeat the request; quote request_id if it stays."},
	{CodeDeletionNotConfirmed, 502, "Deletion is not confirmed in every storage backend yet; the content is unreadable already.", "Repeat the withdrawal, or poll the status until WITHDRAWN."},
	{CodeUnavailable, 503, "A part of the service does not answer; nothing was served or acknowledged.", "Repeat after Retry-After."},
	{CodeStorageFull, 507, "The storage is full; nothing was acknowledged.", "Repeat later; the operator must make room."},
}

// Error is what a client may see of a failure. Message is for a person; Details never hold content or secrets.
type Error struct {
	Code       Code
	Message    string
	Details    map[string]any
	RetryAfter time.Duration // zero: no advice
	cause      error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap gives the internal cause, which no client sees.
func (e *Error) Unwrap() error { return e.cause }

// Because returns a copy of e that carries the internal cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// With returns a copy of e with one detail more; a detail of that name is replaced.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = map[string]any{}
	maps.Copy(c.Details, e.Details)
	c.Details[key] = value
	return &c
}

// Errorf makes an Error with a message for a person.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Unavailable is the answer while a part of the service does not.
func Unavailable(cause error) *Error {
	return (&Error{Code: CodeUnavailable, Message: "the service cannot do this right now; repeat the request later", RetryAfter: 5 * time.Second}).Because(cause)
}

// StorageFull is the answer while there is no room for what has to be kept.
func StorageFull(cause error) *Error {
	return (&Error{Code: CodeStorageFull, Message: "the storage is full; nothing was kept of this request", RetryAfter: time.Minute}).Because(cause)
}

// HTTPStatus is the status that goes with code; 500 for a code that is not in the catalogue.
func (c Code) HTTPStatus() int {
	for _, i := range Codes {
		if i.Code == c {
			return i.Status
		}
	}
	return 500
}

// What stores say; the rooms above turn them into an Error.
var (
	ErrNotFound  = errors.New("not found")
	ErrConflict  = errors.New("changed meanwhile")  // a compare-and-swap lost
	ErrLeaseLost = errors.New("lease lost")         // somebody else works on the row now
	ErrDestroyed = errors.New("data key destroyed") // withdrawn or expired: the bytes can never be read again
	ErrCorrupt   = errors.New("stored bytes are not what was sealed")
	ErrTaken     = errors.New("idempotency key taken")     // by another request, meanwhile
	ErrQuota     = errors.New("storage allowance reached") // nothing was reserved
	ErrInDoubt   = errors.New("commit without an answer")  // it may have happened: undo nothing that it may rely on
)
