package intake

import (
	"slices"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// A claim's path shows no name that the client chose.
func TestPublishedPathsOfClaims(t *testing.T) {
	for path, want := range map[string]string{
		"/verified": "/verified", "/consent/mine/verified": "/consent", "/mine": "", "/payload": "/payload", "/consent/0/certified": "/consent/0/certified", "": "",
		"/evaluation_status/mine": "/evaluation_status",
	} {
		if got := published(path); got != want {
			t.Errorf("published(%q) is %q, want %q", path, got, want)
		}
	}
}

func TestReviewChangesNothingOfItsUpload(t *testing.T) {
	d := newDesk(t)
	u := d.must(d.submit("key"))
	attach := func(name, id, notes string) error {
		_, err := d.AttachReview(t.Context(), d.caller, custody.Review{OrgID: "org_1", UploadID: id, ReviewID: name, Reviewer: "R", Notes: notes}, key(custody.OpExternalReview, name))
		return err
	}
	for range 2 { // the second time it is a replay
		must(t, attach("one", u.ID, ""))
	}
	must(t, attach("two", u.ID, "our plant is ISO 9001 certified"))
	found, err := d.Store.References(t.Context(), u.ID, 20)
	if err != nil || len(found) != 2 || found[0].ReviewID != "one" || found[1].ReviewID != "two" || found[1].AttachedAt.IsZero() {
		t.Errorf("references %+v, %v", found, err)
	}
	if now := d.must(d.Store.Upload(t.Context(), "org_1", u.ID)); now.Sequence != u.Sequence || now.SHA256 != u.SHA256 || !now.UpdatedAt.Equal(u.UpdatedAt) {
		t.Errorf("the upload changed: %+v", now)
	}
	var actions []string
	for _, l := range d.AuditLines(t, "org_1") {
		actions = append(actions, l.Action)
	}
	if want := []string{"reserved", "part_accepted", "completed", "gates_passed", "external_review_attached", "external_review_attached"}; !slices.Equal(actions, want) || d.BrokenLinks(t, "org_1") != 0 {
		t.Errorf("audit %v, %d broken links", actions, d.BrokenLinks(t, "org_1"))
	}
	if err := attach("three", u.ID, "This submission has been certified by this service."); code(err) != custody.CodeVerificationClaim {
		t.Errorf("claim: %v", err)
	}
	if err := attach("four", "upl_00000000000000000000000000", ""); code(err) != custody.CodeUploadNotFound {
		t.Errorf("no upload: %v", err)
	}
	must(t, d.Exec(t.Context(), `UPDATE uploads SET status = 'WITHDRAWING'`))
	if err := attach("five", u.ID, ""); code(err) != custody.CodeUploadNotFound {
		t.Errorf("withdrawn: %v", err)
	}
	must(t, attach("one", u.ID, "")) // the answer outlives its upload
}
