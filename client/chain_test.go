package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// kept is a chain in memory, with the head that its source states.
type kept struct {
	lines []client.EvidenceLine
	head  client.ChainHead
	asked int
	grow  func() // before a page's lines are read
	err   error
}

func (k *kept) Evidence(_ context.Context, q client.EvidenceQuery) (*client.EvidencePage, error) {
	k.asked++
	if k.err != nil && q.After > 0 {
		return nil, k.err
	}
	page := &client.EvidencePage{Head: k.head}
	if k.grow != nil {
		k.grow()
	}
	for _, line := range k.lines {
		switch {
		case line.Position <= q.After:
		case len(page.Lines) == q.Limit:
			page.NextAfter = page.Lines[q.Limit-1].Position
			return page, nil
		default:
			page.Lines = append(page.Lines, line)
		}
	}
	return page, nil
}

// pinned are the chains that the service's own code is held to.
func pinned(t *testing.T, chain string) *kept {
	t.Helper()
	content, err := os.ReadFile("../testdata/evidence/chains.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Audit   []client.AuditLine
		Records []client.RequestRecord
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	k := &kept{}
	if chain == client.ChainAudit {
		for i := range file.Audit {
			k.add(client.EvidenceLine{Audit: &file.Audit[i]}, file.Audit[i].LineHash)
		}
	} else {
		for i := range file.Records {
			k.add(client.EvidenceLine{Record: &file.Records[i]}, file.Records[i].RecordHash)
		}
	}
	return k
}

func (k *kept) add(line client.EvidenceLine, hash string) {
	line.Position = int64(len(k.lines)) + 1
	k.lines = append(k.lines, line)
	k.head = client.ChainHead{Position: line.Position, Hash: hash}
}

const pinnedOrg = "hafen & söhne"

func TestVerifyPinnedChains(t *testing.T) {
	for chain, lines := range map[string]int64{client.ChainAudit: 3, client.ChainRecords: 2} {
		k := pinned(t, chain)
		r, err := client.VerifyChain(t.Context(), k, pinnedOrg, chain, k.head)
		if err != nil || r.Finding != nil || r.Lines != lines || r.Head != k.head || r.OrgID != pinnedOrg || r.Chain != chain {
			t.Errorf("%s: %+v %+v, %v", chain, r, r.Finding, err)
		}
	}
	none := &kept{head: client.ChainHead{Hash: client.FirstHash}}
	if r, err := client.VerifyChain(t.Context(), none, "empty", client.ChainAudit); err != nil || r.Finding != nil || r.Lines != 0 || r.Head != none.head {
		t.Errorf("an empty chain: %+v %+v, %v", r, r.Finding, err)
	}
}

func TestVerifyFindsWhatWasDone(t *testing.T) {
	zero := client.ChainHead{Hash: client.FirstHash}
	for name, c := range map[string]struct {
		do       func(k *kept, was client.ChainHead) (outside []client.ChainHead)
		position int64
		problem  string
		says     string
	}{
		"a field": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines[1].Audit.CredentialID = "somebody"
			return nil
		}, 2, client.ChainChanged, "hash"},
		"a time": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines[2].Audit.At = k.lines[2].Audit.At.Add(time.Millisecond)
			return nil
		}, 3, client.ChainChanged, "hash"},
		"a hash": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines[0].Audit.LineHash = strings.Repeat("a", 64)
			return nil
		}, 1, client.ChainChanged, "hash"},
		"no line at all": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines[0].Audit = nil
			return nil
		}, 1, client.ChainChanged, "hash"},
		"a line in the middle": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines = slices.Delete(k.lines, 1, 2)
			return nil
		}, 2, client.ChainMissing, "position 3"},
		"the first line": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines = k.lines[1:]
			return nil
		}, 1, client.ChainMissing, "position 2"},
		"a line in the middle, the rest renumbered": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines = slices.Delete(k.lines, 1, 2)
			k.lines[1].Position, k.head.Position = 2, 2
			return nil
		}, 2, client.ChainMisplaced, "follow"},
		"two lines swapped": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines[0].Audit, k.lines[1].Audit = k.lines[1].Audit, k.lines[0].Audit
			return nil
		}, 1, client.ChainMisplaced, "follow"},
		"a position twice": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines[1].Position = 1
			return nil
		}, 2, client.ChainMisplaced, "position 1"},
		"the last line": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines = k.lines[:2]
			return nil
		}, 3, client.ChainCutOff, "states is at position 3"},
		"all lines": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.lines = nil
			return nil
		}, 1, client.ChainCutOff, "position 3"},
		"the last line, and the head": {func(k *kept, was client.ChainHead) []client.ChainHead {
			k.lines, k.head = k.lines[:2], client.ChainHead{Position: 2, Hash: k.lines[1].Audit.LineHash}
			return []client.ChainHead{was, zero}
		}, 3, client.ChainCutOff, "outside is at position 3"},
		"all lines, and the head": {func(k *kept, was client.ChainHead) []client.ChainHead {
			k.lines, k.head = nil, zero
			return []client.ChainHead{was}
		}, 1, client.ChainCutOff, "outside is at position 3"},
		"the head alone": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.head.Hash = strings.Repeat("b", 64)
			return nil
		}, 3, client.ChainHeadDiffers, "states"},
		"the head alone, put back": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.head = client.ChainHead{Position: 2, Hash: k.lines[1].Audit.LineHash}
			return nil
		}, 3, client.ChainHeadBehind, "goes on"},
		"the head alone, to nothing": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			k.head = zero
			return nil
		}, 1, client.ChainHeadBehind, "goes on"},
		"everything linked again": {func(k *kept, was client.ChainHead) []client.ChainHead {
			*k = *linked(pinnedOrg, 5)
			return []client.ChainHead{was}
		}, 3, client.ChainRewritten, "after position 0"},
		"the end linked again": {func(k *kept, was client.ChainHead) []client.ChainHead {
			first := client.ChainHead{Position: 1, Hash: k.lines[0].Audit.LineHash}
			for i := range k.lines[1:] {
				l := k.lines[i+1].Audit
				l.Detail, l.PreviousHash = "forged", k.lines[i].Audit.LineHash
				l.LineHash = hashOf(*l)
				k.head.Hash = l.LineHash
			}
			return []client.ChainHead{was, first}
		}, 3, client.ChainRewritten, "after position 1"},
		"another organization's": {func(k *kept, _ client.ChainHead) []client.ChainHead {
			*k = *linked("island", 3)
			return nil
		}, 1, client.ChainMisplaced, "another organization"},
	} {
		t.Run(name, func(t *testing.T) {
			k := pinned(t, client.ChainAudit)
			was := k.head
			outside := c.do(k, was)
			r, err := client.VerifyChain(t.Context(), k, pinnedOrg, client.ChainAudit, outside...)
			if err != nil || r.Finding == nil || r.Finding.Position != c.position || r.Finding.Problem != c.problem || !strings.Contains(r.Finding.Detail, c.says) {
				t.Fatalf("found %+v, %v", r.Finding, err)
			}
			if len(outside) > 0 && c.problem == client.ChainCutOff { // nothing but what was kept outside tells of it
				if r, err := client.VerifyChain(t.Context(), k, pinnedOrg, client.ChainAudit); err != nil || r.Finding != nil {
					t.Errorf("without outside heads: %+v, %v", r.Finding, err)
				}
			}
		})
	}
}

// linked is a well linked audit chain of that many lines.
func linked(org string, lines int) *kept {
	s := &endless{org: org, lines: int64(lines), last: client.ChainHead{Hash: client.FirstHash}}
	k := &kept{}
	for range lines {
		line := s.next()
		k.add(line, line.Audit.LineHash)
	}
	return k
}

func TestVerifyWhileTheChainGrows(t *testing.T) {
	whole := linked("harbour", 2500)
	k := &kept{lines: slices.Clone(whole.lines[:1200]), head: client.ChainHead{Position: 1200, Hash: whole.lines[1199].Audit.LineHash}}
	k.grow = func() { // a line for every page
		n := len(k.lines)
		k.add(whole.lines[n], whole.lines[n].Audit.LineHash)
	}
	r, err := client.VerifyChain(t.Context(), k, "harbour", client.ChainAudit)
	if err != nil || r.Finding != nil || r.Lines < 1200 || k.asked > 4 {
		t.Errorf("%+v %+v after %d pages, %v", r, r.Finding, k.asked, err)
	}
}

func TestVerifyWithoutAnAnswer(t *testing.T) {
	k := linked("harbour", 1001)
	k.err = errors.New("away")
	if r, err := client.VerifyChain(t.Context(), k, "harbour", client.ChainAudit); !errors.Is(err, k.err) {
		t.Errorf("%+v, %v", r, err)
	}
}

// endless makes its lines when they are asked for.
type endless struct {
	org   string
	lines int64
	last  client.ChainHead
	most  uint64 // bytes in use, at the worst of the times that were looked at
}

func hashOf(l client.AuditLine) string {
	l.LineHash = ""
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *endless) next() client.EvidenceLine {
	n := s.last.Position + 1
	l := client.AuditLine{AuditID: fmt.Sprint("aud_", n), OrgID: s.org, At: time.UnixMilli(1_800_000_000_000 + n).UTC(), Action: "reserved", Detail: strings.Repeat("d", 100), PreviousHash: s.last.Hash}
	l.LineHash = hashOf(l)
	s.last = client.ChainHead{Position: n, Hash: l.LineHash}
	return client.EvidenceLine{Position: n, Audit: &l}
}

func (s *endless) Evidence(_ context.Context, q client.EvidenceQuery) (*client.EvidencePage, error) {
	if q.After != s.last.Position || q.Limit > 1000 {
		return nil, fmt.Errorf("asked for %+v after %d", q, s.last.Position)
	}
	page := &client.EvidencePage{}
	for range min(int64(q.Limit), s.lines-q.After) {
		page.Lines = append(page.Lines, s.next())
	}
	page.Head = s.last
	if s.last.Position < s.lines {
		page.NextAfter = s.last.Position
	}
	if s.last.Position%20_000 == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.most = max(s.most, m.HeapAlloc)
	}
	return page, nil
}

func TestVerifyHoldsOnePageAtATime(t *testing.T) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	s := &endless{org: "harbour", lines: 100_000, last: client.ChainHead{Hash: client.FirstHash}}
	r, err := client.VerifyChain(t.Context(), s, "harbour", client.ChainAudit)
	if err != nil || r.Finding != nil || r.Lines != 100_000 {
		t.Fatalf("%+v %+v, %v", r, r.Finding, err)
	}
	if used := int64(s.most) - int64(before.HeapAlloc); s.most == 0 || used > 8<<20 {
		t.Errorf("%d bytes were in use", used)
	}
}

func TestHeadsFile(t *testing.T) {
	hash := strings.Repeat("a", 64)
	none := client.ChainHead{Hash: client.FirstHash}
	h := client.Heads{At: time.Date(2026, 11, 20, 10, 30, 0, 5e6, time.FixedZone("CET", 3600)), Heads: []client.OrganizationHeads{
		{OrgID: "island", Audit: client.ChainHead{Position: 2, Hash: hash}, Records: none}, {OrgID: "", Audit: none, Records: none}, {OrgID: "Hafen & Söhne", Audit: none, Records: none},
	}}
	written, err := h.Encode()
	const zeros = `{"position":0,"hash":"` + client.FirstHash + `"}`
	want := `{"format":"accession heads 1","at":"2026-11-20T09:30:00.005Z","heads":[{"org_id":"","audit":` + zeros + `,"records":` + zeros + `},{"org_id":"Hafen \u0026 Söhne","audit":` + zeros +
		`,"records":` + zeros + `},{"org_id":"island","audit":{"position":2,"hash":"` + hash + `"},"records":` + zeros + `}]}` + "\n"
	if err != nil || string(written) != want {
		t.Fatalf("%s\nwant %s, %v", written, want, err)
	}
	read, err := client.ReadHeads(bytes.NewReader(written))
	if err != nil || !read.At.Equal(h.At) || len(read.Heads) != 3 || read.Heads[2] != h.Heads[0] || read.Heads[2].Of(client.ChainAudit).Position != 2 || read.Heads[2].Of(client.ChainRecords) != none {
		t.Errorf("%+v, %v", read, err)
	}
	for _, bad := range []string{"", "{}", "[]", want[:len(want)/2], strings.Replace(want, "heads 1", "heads 2", 1), strings.Replace(want, "2026", "once", 1),
		strings.Replace(want, hash, hash[1:], 1), strings.Replace(want, hash, strings.ToUpper(hash), 1), strings.Replace(want, `"position":2`, `"position":-2`, 1), strings.Replace(want, `"position":2`, `"position":0`, 1)} {
		if read, err := client.ReadHeads(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, read)
		}
	}
}

func TestEvidenceOfTheService(t *testing.T) {
	e := &echo{data: `{"at":"2026-11-20T09:30:00.000Z","head":{"position":9,"hash":"aa"},"next_after":7,"lines":[{"position":7,"audit":{"audit_id":"aud_7","detail":"<&>"}}],"heads":[{"org_id":"island","audit":{"position":3,"hash":"bb"}}],"next_cursor":"on"}`}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c := newClient(t, server.URL, client.WithAdminToken(strings.Repeat("a", 32)))
	page, err := c.Evidence(t.Context(), client.EvidenceQuery{OrgID: "a&b", Chain: client.ChainAudit, After: 6, Limit: 1})
	if err != nil || e.target != "GET /admin/evidence?after=6&chain=audit&limit=1&org_id=a%26b" || page.NextAfter != 7 || page.Head.Position != 9 || page.Lines[0].Audit.Detail != "<&>" {
		t.Errorf("%s: %+v, %v", e.target, page, err)
	}
	if _, err := c.Evidence(t.Context(), client.EvidenceQuery{Chain: client.ChainRecords}); err != nil || e.target != "GET /admin/evidence?after=0&chain=records&org_id=" {
		t.Errorf("%s: %v", e.target, err)
	}
	heads, err := c.EvidenceHeads(t.Context(), "")
	if err != nil || e.target != "GET /admin/evidence/heads" || heads.NextCursor != "on" || heads.Heads[0].Audit.Hash != "bb" || heads.At.IsZero() {
		t.Errorf("%s: %+v, %v", e.target, heads, err)
	}
	if _, err := c.EvidenceHeads(t.Context(), "a=b"); err != nil || e.target != "GET /admin/evidence/heads?cursor=a%3Db" {
		t.Errorf("%s: %v", e.target, err)
	}
}
