package storetest

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
)

// Metadata proves that sqlstore keeps its promises over the engine of the database that open returns: an empty one each
// time, which registers its own cleanup.
func Metadata(t *testing.T, open func(t *testing.T) sqldb.DB) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Installation)
	}{
		{"an upload comes back as written", metadataUpload},
		{"a status tells of an upload what its row says", metadataState},
		{"somebody else's upload is not found", metadataOtherOrganization},
		{"one of eight attempts at a part wins", metadataPartRace},
		{"only a receiving upload takes parts", metadataPartStatus},
		{"gates and derived objects", metadataDerived},
		{"organizations and credentials", metadataCredentials},
		{"the engine's lifecycle is the table", metadataLifecycle},
		{"a change that is not in the table is refused", metadataUnlisted},
		{"one of eight changes wins and the sequence has no gap", metadataSequence},
		{"a failure stays until it is resumed", metadataFailure},
		{"evidence never changes", metadataEvidence},
		{"every status waits for whoever acts next", metadataDue},
		{"what has lapsed is not completed", metadataLapsed},
		{"40 reservations, room for 10", metadataQuotaRace},
		{"every path gives the quota back", metadataQuotaPaths},
		{"quota never goes below zero", metadataQuotaFloor},
		{"one of 16 claims of an idempotency key is fresh", metadataIdempotency},
		{"the scope of an idempotency key", metadataIdempotencyScope},
		{"no upload has two workers", metadataClaims},
		{"claims keep to lane, limit and order", metadataClaimOrder},
		{"an expired lease is taken over", metadataTakeover},
		{"postponed and released work", metadataPostpone},
		{"a clock that was put back", metadataClockPutBack},
		{"a clock that was put back, for what waits elsewhere", metadataClockPutBackElsewhere},
		{"a withdrawal waits for the worker to let go", metadataWithdrawalLease},
		{"re-scans wait in their own lane", metadataRescanLane},
		{"a re-scan that refuses", metadataRescanRefused},
		{"re-scans are queued by scope and in batches", metadataRescanScope},
		{"what other signatures passed is queued", metadataRescanOutdated},
		{"chains verify", metadataChains},
		{"chains in pages, and their heads", metadataChainPages},
		{"records by filter and page", metadataRecords},
		{"a receipt is what remains", metadataReceipt},
		{"a withdrawal recalls what was served", metadataRecall},
		{"retention ends by upload, organization and setting", metadataRetention},
		{"what is withdrawn is named in no answer", metadataForgottenNames},
		{"events wait in the outbox, in order", metadataOutbox},
		{"no delivery has two carriers", metadataOutboxRace},
		{"a failing endpoint is left alone, and probed", metadataCircuit},
		{"deliveries are given up, replayed and forgotten", metadataDead},
		{"what takes a served context back is told", metadataContextRecalled},
		{"what is told of all organizations together", metadataSums},
		{"organizations in pages, with their figures", metadataOrganizations},
		{"an allowance changes while reservations run", metadataAllowance},
		{"what waits, runs, is held and has failed", metadataStuck},
		{"audit lines by filter and page", metadataAuditSearch},
		{"seats of sessions", metadataSessions},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, Install(t, standing(open(t)))) })
	}
}

// stopped is a database whose clock stands still: no lease of three seconds lapses because the machine is slow.
type stopped struct {
	sqldb.DB
	now string
}

// standing stops the clock a little ahead, so that whatever the test notes itself comes before what the database notes.
func standing(db sqldb.DB) sqldb.DB {
	return stopped{db, strconv.FormatInt(custody.Now().Add(time.Minute).UnixMilli(), 10)}
}

func (s stopped) Dialect() sqldb.Dialect {
	d := s.DB.Dialect()
	d.Now = s.now
	return d
}

// Installation is the metadata of one test: the store, and the database under it for what the store cannot say.
type Installation struct {
	Store *sqlstore.Store
	DB    sqldb.DB
	Path  string // of the SQLite file; empty for other engines
}

// Install brings db up to date.
func Install(t testing.TB, db sqldb.DB) *Installation {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return &Installation{Store: store, DB: db}
}

// OpenSQLite makes an empty installation in a file of its own.
func OpenSQLite(t testing.TB) *Installation {
	t.Helper()
	path := filepath.Join(t.TempDir(), "metadata.db")
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	in := Install(t, db)
	in.Path = path
	return in
}

// Exec runs one statement in a transaction of its own; the suite and the tests of the rooms use it for what no product
// code does: time that passes, an operator's change, an attack.
func (in *Installation) Exec(ctx context.Context, statement string, args ...any) error {
	return in.DB.InTx(ctx, func(q sqldb.Querier) error {
		_, err := q.Exec(ctx, statement, args...)
		return err
	})
}

// must runs one transaction that has to succeed.
func (in *Installation) must(t *testing.T, fn func(*sqlstore.Tx) error) {
	t.Helper()
	if err := in.Store.InTx(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func (in *Installation) organization(t *testing.T, orgID string, allowance int64) {
	t.Helper()
	in.must(t, func(tx *sqlstore.Tx) error { return tx.EnsureOrganization(t.Context(), orgID, allowance) })
}

// newUpload is an upload as intake makes it, with every field set.
func newUpload(orgID string, size int64) custody.Upload {
	now := custody.Now()
	return custody.Upload{
		ID: custody.NewID("upl"), OrgID: orgID, Kind: custody.KindPartner, PipelineID: custody.NewID("pip"), CredentialID: "cred_1",
		Filename: "Jahresbericht größer.pdf", ContentType: "application/pdf", SizeBytes: size,
		Visibility: custody.VisibilityAIReadable, UploaderType: "solution_company",
		Consent: custody.Consent{
			AgreementVersion: "beta-1", AIReadableVersion: "ai-1", TextHashSHA256: strings.Repeat("0f", 32),
			ConsentingUserID: "user-4711", ConsentingEmail: "ann@example.org", AcceptedAt: now.Add(-time.Hour),
		},
		Notes: "the notes", MaterialType: "annual report", Importance: custody.ImportanceImportant,
		PartSizeBytes: 64, NextPart: 1, ReservedBytes: size, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
}

// insert reserves quota and writes u in one transaction, as intake does.
func (in *Installation) insert(t *testing.T, u custody.Upload) custody.Upload {
	t.Helper()
	in.must(t, func(tx *sqlstore.Tx) error {
		return errors.Join(tx.ReserveQuota(t.Context(), u.OrgID, u.SizeBytes), tx.InsertUpload(t.Context(), &u, cause("initiate")))
	})
	return u
}

// reserved is a new upload of an organization with room for it.
func (in *Installation) reserved(t *testing.T, orgID string, size int64) custody.Upload {
	t.Helper()
	in.organization(t, orgID, 1<<40)
	return in.insert(t, newUpload(orgID, size))
}

// move takes u along the lifecycle, one trigger after the other, with the quota that goes with each; it returns how much
// was freed.
func (in *Installation) move(t *testing.T, u *custody.Upload, triggers ...custody.Trigger) (freed int64) {
	t.Helper()
	for _, trigger := range triggers {
		in.must(t, func(tx *sqlstore.Tx) (err error) {
			if *u, err = tx.UploadForChange(t.Context(), u.OrgID, u.ID); err != nil {
				return err
			}
			change := custody.Change{Trigger: trigger, Cause: cause(string(trigger))}
			switch trigger {
			case custody.TriggerGateChanged:
				change.Stage, change.GateState = custody.GateIntegrity, custody.GateRunning
			case custody.TriggerContentRejected, custody.TriggerRescanRefused:
				change.Stage, change.GateState = custody.GateMalwareScan, custody.GateRejected
				change.Failure = &custody.Failure{Gate: custody.GateMalwareScan, Code: "malware_found", Message: "The file is infected."}
			case custody.TriggerGateExhausted:
				change.Stage, change.GateState = custody.GateExtraction, custody.GateFailed
				change.Failure = &custody.Failure{Gate: custody.GateExtraction, Code: "extractor_unavailable", Message: "No answer."}
			case custody.TriggerPartAccepted:
				if err := tx.AppendPart(t.Context(), u, newPart(*u, 1), []byte("state"), ""); err != nil {
					return err
				}
			case custody.TriggerCompleted:
				if err := tx.UseQuota(t.Context(), u); err != nil {
					return err
				}
			case custody.TriggerReservationLapsed, custody.TriggerDeletionConfirmed:
				n, err := tx.FreeQuota(t.Context(), u)
				if err != nil {
					return err
				}
				freed += n
			}
			return tx.Transition(t.Context(), u, change)
		})
	}
	return freed
}

func newPart(u custody.Upload, number int) custody.Part {
	return custody.Part{
		UploadID: u.ID, Number: number, SizeBytes: u.PartLength(number), SHA256: strings.Repeat("ab", 32),
		ObjectKey: "uploads/" + u.ID + "/parts/" + custody.NewID("try"), AcceptedAt: custody.Now(),
	}
}

func cause(of string) custody.Cause {
	return custody.Cause{CredentialID: "cred_" + of, RequestID: "req_" + of, TraceID: "trc_" + of}
}

func (in *Installation) quota(t *testing.T, orgID string) custody.Quota {
	t.Helper()
	q, err := in.Store.Quota(t.Context(), orgID)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (in *Installation) read(t *testing.T, u custody.Upload) custody.Upload {
	t.Helper()
	u, err := in.Store.Upload(t.Context(), u.OrgID, u.ID)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}
