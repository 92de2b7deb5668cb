package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/accession/accession/bench/table"
	"github.com/accession/accession/client"
)

const (
	few   = 1000 // uploads of the small organization
	asked = 200  // requests of each kind at each organization in a round, in turn
	batch = 10_000

	uploadBytes = 14 << 10 // of disk that an upload with its records takes, while it is made too
)

// million prints how long requests about a large organization take beside the same about a small one, in one database.
func (b bench) million(ctx context.Context) error {
	data := filepath.Join(b.work, "million")
	s, err := b.serve(ctx, data)
	if err != nil {
		return err
	}
	tokens, originals := map[string][2]string{}, map[string]string{}
	for _, org := range []string{"large", "small"} {
		if tokens[org], originals[org], err = s.example(ctx, org); err != nil {
			s.stop()
			return err
		}
	}
	s.stop()
	began := time.Now()
	if err := b.fill(ctx, filepath.Join(data, "metadata.db"), originals); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "filled in %s\n", time.Since(began).Round(time.Second))
	if s, err = b.serve(ctx, data); err != nil {
		return err
	}
	defer s.stop()
	for _, ask := range []struct {
		what string
		who  int // of an organization's tokens
		path func(org string, n int) string
	}{
		{"status", 0, func(org string, n int) string { return "partner-uploads/" + copied(org, n) }},
		{"newest page of records", 1, func(string, int) string { return "request-records?limit=100" }},
		{"records of one upload", 1, func(org string, n int) string { return "request-records?limit=100&upload_id=" + copied(org, n) }},
		{"quota", 0, func(string, int) string { return "quota" }},
	} {
		var rounds table.Rounds
		for n := range b.rounds + 1 {
			took := map[string][]float64{}
			for range asked {
				for org, most := range map[string]int{"large": b.uploads, "small": few} {
					r := get("/api/v1/organizations/"+org+"/"+ask.path(org, rand.IntN(most)+1), tokens[org][ask.who])
					began := time.Now()
					if _, _, err := s.once(r); err != nil {
						return err
					}
					took[org] = append(took[org], 1000*time.Since(began).Seconds())
				}
			}
			if n > 0 { // the first warms
				rounds.Add(table.Round{Value: table.Median(took["large"])}, table.Round{Value: table.Median(took["small"])})
			}
		}
		row := rounds.Row(fmt.Sprintf("%s of an organization with %d uploads and %d records, beside %d and %d", ask.what, b.uploads, b.uploads*b.recordsPerEach, few, few*b.recordsPerEach), "%.2f ms", "")
		row.Peak, row.ToReach = s.peak(), "≤ 1.5"
		if err := b.table.Add(row); err != nil {
			return err
		}
	}
	return nil
}

// example has one text of an organization go through its gates and read once: what fill makes copies of. tokens are of who uploads
// and of who reads.
func (s *service) example(ctx context.Context, org string) (tokens [2]string, upload string, err error) {
	manager, err := client.New(s.url, client.WithAdminToken(s.admin))
	if err != nil {
		return tokens, "", err
	}
	var apis [2]*client.Client
	for i, role := range []string{client.RoleUpload, client.RoleAIReader} {
		c, err := manager.IssueCredential(ctx, client.IssueRequest{OrgID: org, Role: role})
		if err != nil {
			return tokens, "", err
		}
		if apis[i], err = client.New(s.url, client.WithToken(c.Token)); err != nil {
			return tokens, "", err
		}
		tokens[i] = c.Token
	}
	kept, err := apis[0].SubmitText(ctx, org, client.TextSubmission{Filename: "note.txt", Payload: text(), Visibility: client.VisibilityAIReadable, Consent: consent()})
	if err != nil {
		return tokens, "", err
	}
	_, err = apis[1].AIContext(ctx, org, kept.UploadID)
	return tokens, kept.UploadID, err
}

func copied(org string, n int) string { return fmt.Sprintf("upl_%s%012d", org, n) }

// fill copies the example of each organization, with its gates and its record, by the schema's own tables. Events and audit lines
// are not copied: none of what is measured reads them.
func (b bench) fill(ctx context.Context, path string, originals map[string]string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?"+url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(OFF)", "cache_size(-262144)"}}.Encode())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for org, upload := range originals {
		most := few
		if org == "large" {
			most = b.uploads
		}
		id := fmt.Sprintf(`printf('upl_%s%%012d', n)`, org)
		for _, table := range []struct {
			name, key string
			of        map[string]string // columns that are no copy
			times     int
		}{
			{"uploads", "upload_id", map[string]string{"upload_id": id}, 1},
			{"gates", "upload_id", map[string]string{"upload_id": id}, 1},
			{"request_records", "upload_id", map[string]string{
				"upload_id": id, "position": fmt.Sprintf("(n - 1) * %d + m + 1", b.recordsPerEach), "record_id": fmt.Sprintf(`printf('rec_%s%%012d-%%d', n, m)`, org),
				"request_id": fmt.Sprintf(`printf('req_%s%%012d-%%d', n, m)`, org), "record_hash": `hex(randomblob(32))`, "previous_hash": `hex(randomblob(32))`,
			}, b.recordsPerEach},
		} {
			columns, err := columnsOf(ctx, db, table.name)
			if err != nil {
				return err
			}
			values := make([]string, len(columns))
			for i, c := range columns {
				if values[i] = "o." + c; table.of[c] != "" {
					values[i] = table.of[c]
				}
			}
			if _, err := db.ExecContext(ctx, `CREATE TEMP TABLE example AS SELECT * FROM `+table.name+` WHERE upload_id = $1`, upload); err != nil {
				return err
			}
			insert := fmt.Sprintf(`WITH RECURSIVE uploads_of(n) AS (SELECT $1 UNION ALL SELECT n + 1 FROM uploads_of WHERE n < $2), times(m) AS (SELECT 0 UNION ALL SELECT m + 1 FROM times WHERE m + 1 < %d)
				INSERT INTO %s (%s) SELECT %s FROM uploads_of, times, example o`, table.times, table.name, strings.Join(columns, ", "), strings.Join(values, ", "))
			if table.name == "request_records" {
				insert += ` WHERE true ON CONFLICT DO NOTHING` // the example's own record is the first of its chain
			}
			for first := 1; first <= most; first += batch {
				if _, err := db.ExecContext(ctx, insert, first, min(first+batch-1, most)); err != nil {
					return fmt.Errorf("%s: %w", table.name, err)
				}
			}
			if _, err := db.ExecContext(ctx, `DROP TABLE temp.example`); err != nil {
				return err
			}
		}
		if _, err := db.ExecContext(ctx, `UPDATE organizations SET record_position = $1, upload_count = $2 WHERE org_id = $3`, most*b.recordsPerEach, most+1, org); err != nil {
			return err
		}
	}
	return nil
}

func columnsOf(ctx context.Context, db *sql.DB, table string) (columns []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT name FROM pragma_table_info($1)`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		columns = append(columns, name)
	}
	return columns, rows.Err()
}
