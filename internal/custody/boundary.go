package custody

// ContractLabel is the version of the contract. (Section 9, rule 6.)
const ContractLabel = "v1-phase28"

// DataBoundary is what stays true of everything the service holds and serves: booleans and strings. (Sections 1 and 2.7.)
var DataBoundary = map[string]any{
	"boundary_label":          BoundaryLabel,
	"release":                 "private beta",
	"evaluation_status":       EvaluationStatus,
	"content_trust":           "untrusted",
	"verifies_content":        false,
	"organization_scoped":     true,
	"raw_payload_download":    false,
	"bulk_export":             false,
	"bulk_operations":         false,
	"sandbox_production_data": false,
	"withdrawal":              "deletes payload, copies and derived context; a receipt and minimal audit metadata remain",
	"verification_claims":     "refused",
	"credentials_in_browsers": false,
}
