package e2e

import (
	"maps"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

func TestCompletionIsRefusedUnlessEverythingMatches(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	parts := cut(noise(partSize+10, 3), partSize)
	id := p.initiate("a.bin", "application/octet-stream", partSize+10)
	p.complete(id, parts).want(t, 409, "part_ledger_mismatch") // nothing is here
	p.part(id, 1, parts[0]).want(t, 200, "")
	if r := p.complete(id, parts).want(t, 409, "part_ledger_mismatch"); r.Details["next_part_number"] != float64(2) || r.Details["received_bytes"] != float64(partSize) {
		t.Errorf("details: %s", r.Raw)
	}
	p.part(id, 2, parts[1]).want(t, 200, "")

	type entry = map[string]any
	right := []entry{{"part_number": 1, "sha256": hexSum(parts[0]), "size_bytes": partSize}, {"part_number": 2, "sha256": hexSum(parts[1]), "size_bytes": 10}}
	with := func(n int, change entry) []entry {
		ledger := []entry{maps.Clone(right[0]), maps.Clone(right[1])}
		maps.Copy(ledger[n], change)
		return ledger
	}
	sum := hexSum(whole(parts))
	for _, c := range []struct {
		name   string
		body   entry
		status int
		code   string
	}{
		{"other digest of the file", entry{"parts": right, "client_file_sha256": hexSum([]byte("other"))}, 409, "digest_mismatch"},
		{"other digest of a part", entry{"parts": with(1, entry{"sha256": hexSum([]byte("other"))}), "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"other size of a part", entry{"parts": with(0, entry{"size_bytes": partSize - 1}), "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"a part missing", entry{"parts": right[:1], "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"a part too many", entry{"parts": append(right[:2:2], entry{"part_number": 3}), "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"parts in another order", entry{"parts": []entry{right[1], right[0]}, "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"a part twice", entry{"parts": []entry{right[0], right[0]}, "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"numbers alone, in another order", entry{"parts": []entry{{"part_number": 2}, {"part_number": 1}}, "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"numbers alone, one twice", entry{"parts": []entry{{"part_number": 1}, {"part_number": 1}}, "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"a digest of one part, and not its own", entry{"parts": []entry{{"part_number": 1}, {"part_number": 2, "sha256": hexSum(parts[0])}}, "client_file_sha256": sum}, 409, "part_ledger_mismatch"},
		{"no parts", entry{"parts": []entry{}, "client_file_sha256": sum}, 400, "invalid_request"},
		{"no digest", entry{"parts": right}, 400, "invalid_request"},
		{"upper case", entry{"parts": right, "client_file_sha256": strings.ToUpper(sum)}, 400, "invalid_request"},
		{"part number 0", entry{"parts": with(0, entry{"part_number": 0}), "client_file_sha256": sum}, 400, "invalid_request"},
		{"size 0", entry{"parts": with(0, entry{"size_bytes": 0}), "client_file_sha256": sum}, 400, "invalid_request"},
		{"another property", entry{"parts": right, "client_file_sha256": sum, "force": true}, 400, "invalid_request"},
		{"another property of a part", entry{"parts": with(0, entry{"etag": "x"}), "client_file_sha256": sum}, 400, "invalid_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := p.in(t), s.in(t)
			c.body["upload_id"] = id
			s.do(call{method: "POST", path: p.path("/partner-uploads/complete"), token: p.token, key: client.NewIdempotencyKey(), json: c.body}).want(t, c.status, c.code)
			if st := p.status(id); st.Status != "RECEIVING" {
				t.Fatalf("status %s", st.Status)
			}
		})
	}
	// What is optional may be left out.
	s.do(call{method: "POST", path: p.path("/partner-uploads/complete"), token: p.token, key: client.NewIdempotencyKey(),
		json: entry{"upload_id": id, "parts": []entry{{"part_number": 1}, {"part_number": 2}}, "client_file_sha256": sum}}).want(t, 202, "")
}

func TestSecondCompletionIsAnsweredWithoutASecondJob(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	content := [][]byte{note("late-tide")}
	id := p.initiate("note.txt", "text/plain", len(content[0]))
	p.part(id, 1, content[0]).want(t, 200, "")
	key := client.NewIdempotencyKey()
	first := s.do(p.closing(byQuery, id, key, content)).want(t, 202, "")
	wantReplay(t, first, s.do(p.closing(byQuery, id, key, content)))
	other := s.do(p.closing(byQuery, id, client.NewIdempotencyKey(), content)).want(t, 200, "")
	if other.field(t, "pipeline_id") != first.field(t, "pipeline_id") || other.field(t, "sha256") != hexSum(content[0]) || strings.Contains(string(other.Data), "job") {
		t.Errorf("complete again: %s", other.Raw)
	}
	done := p.wantReady(id)
	if r := s.do(p.closing(byPath, id, client.NewIdempotencyKey(), content)).want(t, 200, ""); r.field(t, "status") != "READY" {
		t.Errorf("complete once READY: %s", r.Raw)
	}
	wrong := p.closing(byQuery, id, client.NewIdempotencyKey(), [][]byte{[]byte("something else")})
	s.do(wrong).want(t, 409, "part_ledger_mismatch")
	if now := p.status(id); now.Sequence != done.Sequence {
		t.Errorf("repeated completions made events: sequence %d, was %d", now.Sequence, done.Sequence)
	}
}
