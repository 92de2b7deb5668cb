package table_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accession/accession/bench/table"
)

func TestBenchesMakeOneTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.md")
	var r table.Rounds
	r.Add(table.Round{Value: 120, CPU: 2}, table.Round{Value: 100, CPU: 1})
	r.Add(table.Round{Value: 90, CPU: 3}, table.Round{Value: 100, CPU: 1})
	r.Add(table.Round{Value: 200, CPU: 4}, table.Round{Value: 100, CPU: 1})
	measured := r.Row("upload", "%.0f MB/s", "%.1f s/GiB")
	measured.Peak, measured.ToReach = table.MiB(34<<20), "≥ 1.15"
	for _, row := range []table.Row{measured, {Job: "idle", Accession: "60 MiB"}} { // each of a bench of its own
		bench, err := table.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := bench.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `| Row | accession | reference | ratio (lowest–highest) | CPU | reference CPU | peak memory | to reach |
|---|---|---|---|---|---|---|---|
| upload | 120 MB/s | 100 MB/s | 1.20 (0.90–2.00) | 3.0 s/GiB | 1.0 s/GiB | 34.0 MiB | ≥ 1.15 |
| idle | 60 MiB | | | | | | |
`
	if string(got) != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

func TestOnlyRowsThatThereAreAreChosen(t *testing.T) {
	all := []string{"bare", "tusd"}
	for value, want := range map[string]string{"all": "bare,tusd", "tusd": "tusd", "tusd,bare": "tusd,bare"} {
		if got, err := table.Choose("rows", value, all); err != nil || strings.Join(got, ",") != want {
			t.Errorf("%s chooses %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "tus", "bare,"} {
		if got, err := table.Choose("rows", value, all); err == nil || !strings.Contains(err.Error(), "write some of bare,tusd") {
			t.Errorf("%q chooses %v, %v", value, got, err)
		}
	}
}
