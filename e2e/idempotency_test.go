package e2e

import (
	"sync"
	"testing"

	"github.com/accession/accession/client"
)

func (p partner) reserving(key string, size any) call {
	return call{method: "POST", path: p.path("/partner-uploads/initiate"), token: p.token, key: key,
		json: map[string]any{"filename": "note.txt", "content_type": "text/plain", "size_bytes": size, "consent": consent()}}
}

func issuing(key, org, role string) call {
	return call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken, key: key, json: map[string]any{"org_id": org, "role": role}}
}

func (p partner) withdrawing(uploadID, key, reason string) call {
	return call{method: "POST", path: p.path("/partner-uploads/" + uploadID + "/withdraw"), token: p.token, key: key, json: map[string]any{"reason": reason}}
}

// Every mutation of the main job, one after the other: repeated with its key, then with its key for something else.
func TestEveryMutationIsRepeatedByItsKey(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	const key = "one-key-for-every-operation" // keys belong to an operation and a credential
	issued := s.do(issuing(key, "harbour", "solution_company_upload")).want(t, 201, "")
	wantReplay(t, issued, s.do(issuing(key, "harbour", "solution_company_upload")))
	s.do(issuing(key, "harbour", "ai_reader")).want(t, 409, "idempotency_conflict")
	p := partner{s, "harbour", issued.field(t, "token")}

	content := note("old-pier")
	reserved := s.do(p.reserving(key, len(content))).want(t, 200, "")
	wantReplay(t, reserved, s.do(p.reserving(key, len(content))))
	s.do(p.reserving(key, len(content)+1)).want(t, 409, "idempotency_conflict")
	id := reserved.field(t, "upload_id")
	other := p.initiate("other.txt", "text/plain", len(content))

	accepted := s.do(p.put(byPath, id, 1, key, content)).want(t, 200, "")
	wantReplay(t, accepted, s.do(p.put(byPath, id, 1, key, content)))
	s.do(p.put(byPath, id, 1, key, note("new-pier"))).want(t, 409, "idempotency_conflict")
	s.do(p.put(byPath, other, 1, key, content)).want(t, 409, "idempotency_conflict")
	p.part(other, 1, content).want(t, 200, "")

	completed := s.do(p.closing(byQuery, id, key, [][]byte{content})).want(t, 202, "")
	wantReplay(t, completed, s.do(p.closing(byQuery, id, key, [][]byte{content})))
	s.do(p.closing(byQuery, other, key, [][]byte{content})).want(t, 409, "idempotency_conflict")
	p.wantReady(id)

	withdrawn := s.do(p.withdrawing(id, key, "moved out")).want(t, 200, "")
	wantReplay(t, withdrawn, s.do(p.withdrawing(id, key, "moved out")))
	s.do(p.withdrawing(id, key, "another reason")).want(t, 409, "idempotency_conflict")
	s.do(p.withdrawing(other, key, "moved out")).want(t, 409, "idempotency_conflict")
	if st := p.status(other); st.Status != "RECEIVING" {
		t.Errorf("the refused requests changed the other upload: %+v", st)
	}

	// The answers are kept past their upload; another credential has keys of its own.
	wantReplay(t, reserved, s.do(p.reserving(key, len(content))))
	wantReplay(t, accepted, s.do(p.put(byPath, id, 1, key, content)))
	wantReplay(t, completed, s.do(p.closing(byQuery, id, key, [][]byte{content})))
	second := s.partner("harbour")
	if r := s.do(second.reserving(key, 5)).want(t, 200, ""); r.field(t, "upload_id") == id {
		t.Error("another credential got the first one's answer")
	}
}

// A key's scope is the credential, however that is presented.
func TestAKeyIsOfTheCredentialNotOfItsHeader(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	uploader := s.oauthClient("harbour", "solution_company_upload")
	p := partner{s, "harbour", uploader.secret}
	const key = "one-key-two-headers"
	first := s.do(p.reserving(key, 10)).want(t, 200, "")
	byToken := func(size int) call {
		c := p.reserving(key, size)
		c.token, c.bearer = "", s.accessToken(uploader)
		return c
	}
	wantReplay(t, first, s.do(byToken(10)))
	s.do(byToken(11)).want(t, 409, "idempotency_conflict")
}

func TestAnswersOutliveARestart(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	issue := issuing("key-of-the-issue", "harbour", "solution_company_upload")
	issued := s.do(issue).want(t, 201, "")
	p := partner{s, "harbour", issued.field(t, "token")}
	reserved := s.do(p.reserving("key-of-the-reservation", 10)).want(t, 200, "")
	if exit := s.stop(); exit != 0 {
		t.Fatalf("exit %d", exit)
	}
	again := start(t, options{data: s.data})
	wantReplay(t, issued, again.do(issue))
	wantReplay(t, reserved, again.do(partner{again, "harbour", p.token}.reserving("key-of-the-reservation", 10)))
}

func TestConcurrentRequestsWithOneKeyHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	const n = 50
	replies, errs := make([]reply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i], errs[i] = s.try(p.reserving("one-key-for-fifty", 1000)) })
	}
	all.Wait()
	firsts := 0
	for i, r := range replies {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		r.want(t, 200, "")
		sameBut(t, replies[0], r)
		if r.Header.Get("Idempotent-Replayed") == "" {
			firsts++
		}
	}
	if firsts != 1 {
		t.Errorf("%d answers were first", firsts)
	}
	if q := s.quota("harbour", p.token); q.ReservedBytes != 1000 || q.UploadCount != 1 {
		t.Errorf("quota: %+v", q)
	}
}

func TestRefusedRequestsDoNotBurnTheirKey(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_QUOTA_BYTES=1000"}})
	p := s.partner("harbour")
	key := client.NewIdempotencyKey()
	s.do(p.reserving(key, 0)).want(t, 400, "invalid_request")
	s.do(p.reserving(key, "ten")).want(t, 400, "invalid_request")
	s.do(p.reserving(key, 1001)).want(t, 409, "quota_exceeded")
	first := s.do(p.reserving(key, 10)).want(t, 200, "")
	wantReplay(t, first, s.do(p.reserving(key, 10)))

	id := first.field(t, "upload_id")
	s.do(p.put(byPath, id, 1, key, []byte("short"))).want(t, 400, "part_length_invalid")
	s.do(p.put(byPath, id, 2, key, []byte("0123456789"))).want(t, 409, "part_out_of_order")
	s.do(p.put(byPath, id, 1, key, []byte("0123456789"))).want(t, 200, "")
	s.do(p.closing(byQuery, id, key, [][]byte{[]byte("9876543210")})).want(t, 409, "part_ledger_mismatch")
	s.do(p.closing(byQuery, id, key, [][]byte{[]byte("0123456789")})).want(t, 202, "")

	s.do(issuing(key, "harbour", "captain")).want(t, 400, "invalid_request")
	s.do(issuing(key, "harbour", "ai_reader")).want(t, 201, "")
}

func TestTokenIsNeverWrittenDown(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_ADMIN_TOKEN="}})
	admin := string(readFile(t, s.data+"/admin-token"))
	admin = admin[:len(admin)-1]
	issue := issuing("key-of-the-issue", "harbour", "solution_company_upload")
	issue.bearer = admin
	token := s.do(issue).want(t, 201, "").field(t, "token")
	p := partner{s, "harbour", token}
	if again := s.do(issue).want(t, 201, "").field(t, "token"); again != token || len(token) < 40 {
		t.Error("the replay of an issue gives another token")
	}
	id := p.send("note.txt", "text/plain", note("dry-dock"))
	p.wantReady(id)
	forged := p
	forged.token = token[:len(token)-2] + "xx"
	s.do(forged.reserving(client.NewIdempotencyKey(), 10)).want(t, 401, "credential_invalid")
	s.wantUnseen(token, forged.token, token[len(token)-43:])
	for _, place := range s.showing(admin) {
		if place != s.data+"/admin-token: "+admin {
			t.Errorf("the admin token is in %s", place[:len(place)-len(admin)])
		}
	}
}
