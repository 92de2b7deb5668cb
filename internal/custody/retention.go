package custody

import "time"

// MaxRetentionDays bounds a Retention.
const MaxRetentionDays = 36500

// RetentionCredentialID is who asks for the withdrawal of an upload whose retention has ended.
const RetentionCredentialID = "retention"

// Retention is how long an organization's uploads stay, of any kind and status; then they are withdrawn.
type Retention struct {
	OrgID string
	Days  int // of 24 hours, from an upload's creation; 1 to MaxRetentionDays, 0: without end
}

// Until is when the retention of an upload created then ends; zero where it has no end.
func (r Retention) Until(created time.Time) time.Time {
	if r.Days == 0 {
		return time.Time{}
	}
	return created.Add(time.Duration(r.Days) * 24 * time.Hour)
}

// RetentionEnded is an upload whose retention has ended.
type RetentionEnded struct {
	OrgID    string
	UploadID string
}

// OrganizationNotFound is the administrator's answer for an organization that the service does not know.
func OrganizationNotFound() *Error {
	return Errorf(CodeOrganizationNotFound, "there is no such organization; it begins with its first credential")
}
