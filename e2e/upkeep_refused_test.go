package e2e

import (
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// Of a text that was refused the data key goes first. Where its row could not follow, nothing is lost that anybody was told of: no alarm,
// and the reservation ends it.
func TestRefusedTextWithoutAKeyIsNoLoss(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	kept := p.submit(text("The harbour was dredged.", nil))
	db := s.database(t, "metadata.db")
	mustExec(t, db, `CREATE TRIGGER refuse BEFORE UPDATE OF status ON uploads WHEN NEW.status = 'EXPIRED' BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
	p.do(p.submitting(client.NewIdempotencyKey(), text(eicar(), nil))).want(t, 400, "content_refused")
	if n := count(t, db, `SELECT COUNT(*) FROM uploads WHERE status = 'INITIATED'`); n != 1 {
		t.Fatalf("%d rows stay: this test no longer makes one", n)
	}
	s.wantCLI(0, "", "fsck")
	mustExec(t, db, `DROP TRIGGER refuse`)

	s.stop()
	mustExec(t, s.database(t, "keys.db"), `DELETE FROM data_keys WHERE upload_id = '`+kept+`'`)
	s = start(t, options{data: s.data})
	s.awaitLog("UPLOADS WITHOUT A DATA KEY") // of a key that is missed
	if said := s.log.lines("UPLOADS WITHOUT A DATA KEY")[0]; !strings.Contains(said, `"uploads":1,"upload_ids":["`+kept+`"]`) {
		t.Errorf("at the start: %q", said)
	}
}
