package e2e

import (
	"database/sql"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named "pgx"

	"github.com/accession/accession/internal/storetest/cluster"
)

// onPostgres are the tests that every store has to pass: the main job and whatever hangs on transactions. A test of the table
// is run as a part of TestOnPostgres, where launch gives each data folder a database of its own.
var onPostgres = map[string]func(*testing.T){
	"job":                      TestScannedDocumentIsReadServedAndWithdrawnWithoutATrace,
	"withdrawal":               TestEveryStatusCanBeWithdrawn,
	"concurrent withdrawals":   TestConcurrentWithdrawalsHaveOneReceipt,
	"idempotency":              TestEveryMutationIsRepeatedByItsKey,
	"concurrent keys":          TestConcurrentRequestsWithOneKeyHaveOneEffect,
	"answers outlive restarts": TestAnswersOutliveARestart,
	"isolation":                TestAnotherOrganizationsUploadDoesNotExist,
	"isolation matrix":         TestIsolationMatrix,
	"credentials":              TestEveryOperationRefusesTheWrongCredential,
	"quota":                    TestQuotaIsReservedUsedAndGivenBack,
	"MCP":                      TestMCPServesWhatRESTServes,
	"MCP tokens":               TestMCPRefusesConfusedTokens,
	"MCP tenants":              TestMCPTenantsOnOneConnection,
	"MCP tools":                TestMCPToolsKeepToTheirOrganization,
	"recall":                   TestRefusedContextIsRecalled,
	"sessions":                 TestPortalSession,
	"database faults":          TestDatabaseThatFails,
}

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	for name, test := range onPostgres {
		t.Run(name, test)
	}
}

// databases are those of TestOnPostgres and of tests with replicas, by data folder.
var databases sync.Map

// storeSettings are the environment of a service on the stores that the test is about.
func storeSettings(t testing.TB, data string) []string {
	if url, ok := databases.Load(data); ok {
		return []string{"ACCESSION_DATABASE=" + url.(string)}
	}
	if !strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return nil
	}
	url := cluster.Database(t)
	databases.Store(data, url)
	return []string{"ACCESSION_DATABASE=" + url}
}

// postgres opens the schema that stands for a file of SQLite, past row-level security.
func postgres(t testing.TB, url, file string) *sql.DB {
	t.Helper()
	schema := map[string]string{"metadata.db": "accession", "keys.db": "accession_keys"}[file]
	db, err := sql.Open("pgx", cluster.Superuser(url)+"&search_path="+schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
