package custody

import "slices"

// Operation names one operation of the contract; it is the operationId of the published document and the scope of an
// Idempotency-Key.
type Operation string

const (
	OpIssueCredential  Operation = "issueTenantKey"
	OpListCredentials  Operation = "listTenantKeys"
	OpRevokeCredential Operation = "revokeTenantKey"
	OpRotateCredential Operation = "rotateTenantKey"
	OpListSigningKeys  Operation = "listSigningKeys"
	OpRotateSigningKey Operation = "rotateSigningKey"
	OpRetireSigningKey Operation = "retireSigningKey"
	OpRotateKeys       Operation = "rotateKeyEncryptionKey"
	OpQueueRescans     Operation = "queueRescans"
	OpRescans          Operation = "getRescans"
	OpCheckStorage     Operation = "checkStorage"
	OpResumeUpload     Operation = "resumeUpload"
	OpSetRetention     Operation = "setRetention"
	OpRetention        Operation = "getRetention"
	OpIdentity         Operation = "getIdentity"
	OpInitiateUpload   Operation = "initiatePartnerUpload"
	OpPutPart          Operation = "putPartnerUploadPart"
	OpCompleteUpload   Operation = "completePartnerUpload"
	OpUploadStatus     Operation = "getPartnerUploadStatus"
	OpWithdrawUpload   Operation = "withdrawPartnerUpload"
	OpReceipt          Operation = "getWithdrawalReceipt"
	OpQuota            Operation = "getQuota"
	OpAIContext        Operation = "getAIContext"
	OpRequestRecords   Operation = "listRequestRecords"
	OpFindCanary       Operation = "findCanary"
	OpEvidence         Operation = "listEvidence"
	OpHeads            Operation = "listEvidenceHeads"
	OpSearchAudit      Operation = "searchAudit"
	OpOrganizations    Operation = "listOrganizations"
	OpAllowance        Operation = "getOrganizationQuota"
	OpSetAllowance     Operation = "setQuota"
	OpState            Operation = "getState"
	OpCustomerUpload   Operation = "createCustomerUpload"
	OpCorrection       Operation = "createCorrection"
	OpExternalReview   Operation = "attachExternalReview"

	OpSetWebhook            Operation = "setWebhook"
	OpListWebhooks          Operation = "listWebhooks"
	OpRotateWebhookSecret   Operation = "rotateWebhookSecret"
	OpDeleteWebhook         Operation = "deleteWebhook"
	OpTestWebhook           Operation = "testWebhook"
	OpListWebhookDeliveries Operation = "listWebhookDeliveries"
	OpReplayWebhook         Operation = "replayWebhookDeliveries"
)

// access is one row of the table "Authentication per operation" of the contract decisions.
type access struct {
	role    Role // empty: any role
	scope   Scope
	admin   bool // the admin token may do it too
	refusal Code // for a wrong organization or role
}

var accessTable = map[Operation]access{
	OpInitiateUpload: {RoleSolutionCompanyUpload, ScopeCustomerUpload, false, CodeCredentialNotBound},
	OpPutPart:        {RoleSolutionCompanyUpload, ScopeCustomerUpload, false, CodeCredentialNotBound},
	OpCompleteUpload: {RoleSolutionCompanyUpload, ScopeCustomerUpload, false, CodeCredentialNotBound},
	OpUploadStatus:   {"", ScopeMetadataRead, false, CodeUploadNotFound},
	OpWithdrawUpload: {RoleSolutionCompanyUpload, ScopeCustomerUpload, true, CodeAccessDenied},
	OpReceipt:        {"", ScopeMetadataRead, true, CodeReceiptNotFound},
	OpQuota:          {"", ScopeMetadataRead, false, CodeAccessDenied},
	OpAIContext:      {RoleAIReader, ScopeAIContext, false, CodeAccessDenied},
	OpRequestRecords: {RoleAIReader, ScopeAIContext, false, CodeAccessDenied},
	OpCustomerUpload: {"", ScopeCustomerUpload, false, CodeAccessDenied},
	OpCorrection:     {"", ScopeCorrection, false, CodeAccessDenied},
	OpExternalReview: {"", ScopeExternalReference, false, CodeAccessDenied},
}

var adminOperations = []Operation{
	OpIssueCredential, OpListCredentials, OpRevokeCredential, OpRotateCredential, OpListSigningKeys, OpRotateSigningKey, OpRetireSigningKey, OpRotateKeys,
	OpQueueRescans, OpRescans, OpCheckStorage, OpResumeUpload, OpSetRetention, OpRetention,
	OpFindCanary,
	OpEvidence, OpHeads, OpSearchAudit,
	OpOrganizations, OpAllowance, OpSetAllowance, OpState,
	OpSetWebhook, OpListWebhooks, OpRotateWebhookSecret, OpDeleteWebhook, OpTestWebhook, OpListWebhookDeliveries, OpReplayWebhook,
}

// AdminOnly tells whether op takes the admin token and nothing else.
func AdminOnly(op Operation) bool { return slices.Contains(adminOperations, op) }

// ScopeOf is the scope that op asks of a tenant credential; empty where a scope does not decide.
func ScopeOf(op Operation) Scope { return accessTable[op].scope }

// Authorize says whether c may do op for the organization; every operation asks it first, before it looks anything up,
// so that a refusal tells nothing about what exists. Errors: 401, 403 or 404 by the table above.
func Authorize(op Operation, c Caller, orgID string) error {
	if c.CredentialID == "" {
		return Errorf(CodeAuthenticationRequired, "this operation needs %s", whatItTakes(op))
	}
	if AdminOnly(op) {
		if !c.Admin {
			return Errorf(CodeCredentialInvalid, "this operation needs %s", whatItTakes(op))
		}
		return nil
	}
	if op == OpIdentity {
		if c.TokenID == "" {
			return Errorf(CodeCredentialInvalid, "this operation needs %s", whatItTakes(op))
		}
		return nil
	}
	a, ok := accessTable[op]
	switch {
	case !ok:
		return Errorf(CodeAccessDenied, "this operation is not open to credentials")
	case c.Admin && a.admin:
		return nil
	case c.Admin, c.OrgID != orgID, a.role != "" && c.Role != a.role:
		return refusals[a.refusal]
	case !c.Has(a.scope):
		return Errorf(CodeInsufficientScope, "the credential lacks the scope %s", a.scope).With("required_scope", a.scope)
	}
	return nil
}

// whatItTakes says what to send, and where.
func whatItTakes(op Operation) string {
	switch {
	case AdminOnly(op):
		return "the admin token as Authorization: Bearer"
	case op == OpIdentity:
		return "an OAuth access token as Authorization: Bearer"
	}
	return "a credential in the x-api-key header or as a Bearer token"
}

var refusals = map[Code]*Error{
	CodeCredentialNotBound: Errorf(CodeCredentialNotBound, "this operation needs a solution_company_upload credential that is bound to exactly this organization"),
	CodeUploadNotFound:     UploadNotFound(),
	CodeReceiptNotFound:    ReceiptNotFound(),
	CodeAccessDenied:       Errorf(CodeAccessDenied, "the credential may not do this for this organization"),
}

// ReceiptNotFound is the one answer for a receipt that does not exist and for one that belongs to somebody else.
func ReceiptNotFound() *Error {
	return Errorf(CodeReceiptNotFound, "there is no such withdrawal receipt for this credential")
}

// UploadNotFound is the one answer for an upload that does not exist and for one that belongs to somebody else.
func UploadNotFound() *Error {
	return Errorf(CodeUploadNotFound, "there is no such upload for this credential")
}
