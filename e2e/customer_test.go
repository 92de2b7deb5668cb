package e2e

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// text is the body of a submission; change edits it.
func text(payload string, change map[string]any) map[string]any {
	body := map[string]any{"filename": "note.txt", "payload": payload, "visibility": "ai_readable_controlled", "consent": consent()}
	maps.Copy(body, change)
	return body
}

func (p partner) submitting(key string, body map[string]any) call {
	return call{method: "POST", path: p.path("/customer-uploads"), token: p.token, key: key, json: body}
}

func (p partner) correcting(original, key string, body map[string]any) call {
	return call{method: "POST", path: p.path("/customer-uploads/" + original + "/corrections"), token: p.token, key: key, json: body}
}

func (p partner) reviewing(uploadID, key string, body map[string]any) call {
	return call{method: "POST", path: p.path("/customer-uploads/" + uploadID + "/external-review"), token: p.token, key: key, json: body}
}

// submit hands in a text and returns its id.
func (p partner) submit(body map[string]any) string {
	p.t.Helper()
	return p.do(p.submitting(client.NewIdempotencyKey(), body)).want(p.t, 201, "").field(p.t, "upload_id")
}

func (p partner) correct(original, payload string) string {
	p.t.Helper()
	return p.do(p.correcting(original, client.NewIdempotencyKey(), text(payload, nil))).want(p.t, 201, "").field(p.t, "upload_id")
}

// whoConsents makes the consenting person one who can be searched for.
func whoConsents(body map[string]any) (who []string) {
	who = []string{"person-5f1c77a0", "someone.who.consents@example.com"}
	agreed := consent()
	agreed["consenting_user_id"], agreed["consenting_user_email"] = who[0], who[1]
	body["consent"] = agreed
	return who
}

// wantUntold fails the test where an answer or the log tells one of the texts.
func (s *service) wantUntold(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(s.said.String(), text) || strings.Contains(s.log.String(), text) {
			s.t.Errorf("an answer or the log tells %q", text)
		}
	}
}

// wantNothingKept fails the test where an upload of harbour holds bytes, quota or a name.
func (s *service) wantNothingKept(p partner) {
	s.t.Helper()
	s.wantNoObjects()
	if q := s.quota(p.org, p.token); q.UsedBytes+q.ReservedBytes+q.UploadCount != 0 {
		s.t.Errorf("quota: %+v", q)
	}
	var named, keys int
	if err := s.database(s.t, "metadata.db").QueryRow(`SELECT count(*) FROM uploads WHERE filename <> '' OR status <> 'EXPIRED'`).Scan(&named); err != nil || named != 0 {
		s.t.Errorf("%d uploads have a name or a future, %v", named, err)
	}
	if err := s.database(s.t, "keys.db").QueryRow(`SELECT count(*) FROM data_keys`).Scan(&keys); err != nil || keys != 0 {
		s.t.Errorf("%d data keys, %v", keys, err)
	}
}

func TestTextIsReadableAtOnceAndWithdrawnWithoutATrace(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	content := string(note("copper-heron-58"))
	body := text(content, map[string]any{"filename": "Prüfung größer.txt", "content_type": "text/markdown; charset=utf-8", "more": map[string]any{"a": 1},
		"uploader_organization_type": "third_party", "uploader_organization_id": "island", "customer_workspace_access": "granted", "asserted_subject_org_id": "harbour"})
	who := whoConsents(body)
	r := s.do(p.submitting("key-of-the-text", body)).want(t, 201, "")
	id := r.field(t, "upload_id")
	for name, want := range map[string]string{"org_id": "harbour", "status": "READY", "filename": "Prüfung größer.txt", "evaluation_status": "not_evaluated", "sequence": "9", "original_upload_id": ""} {
		if r.field(t, name) != want {
			t.Errorf("%s is %q, want %q", name, r.field(t, name), want)
		}
	}
	if r.field(t, "pipeline_id") == "" || !strings.Contains(string(r.Data), `"consent_capture":{"status":"captured",`) {
		t.Errorf("answer: %s", r.Raw)
	}

	// At once: the context, the status, the quota.
	c := decode[servedContext](t, s.context("harbour", reader, id).want(t, 200, ""))
	if !strings.Contains(c.text(), "copper-heron-58") || c.Context.MediaType != "text/markdown" || c.Context.Source.SHA256 != hexSum([]byte(content)) ||
		c.Context.Source.UploaderOrganizationType != "third_party" || c.Context.Source.Filename != "Prüfung größer.txt" || len(c.Context.Corrections) != 0 {
		t.Errorf("context: %+v", c)
	}
	st := p.wantReady(id)
	if st.Sequence != 9 || st.ReceivedBytes != int64(len(content)) || st.Gates[2].Detail["engine"] != "ClamAV" || st.Gates[2].Detail["scanned_bytes"] != float64(len(content)) ||
		st.Gates[0].Detail["sha256"] != hexSum([]byte(content)) || st.Gates[3].Detail["pages"] != float64(1) {
		t.Errorf("status: %+v", st)
	}
	if q := s.quota("harbour", p.token); q.UsedBytes != int64(len(content)) || q.ReservedBytes != 0 || q.UploadCount != 1 {
		t.Errorf("quota: %+v", q)
	}
	if n := len(s.objects()); n != 5 { // the part and its copy; text, summary, context
		t.Errorf("%d objects", n)
	}
	s.wantUnseen("copper-heron-58")
	wantReplay(t, r, s.do(p.submitting("key-of-the-text", body)))
	s.do(p.submitting("key-of-the-text", text("another text", nil))).want(t, 409, "idempotency_conflict")

	p.wantWithdrawn(id, len(content))
	s.context("harbour", reader, id).want(t, 404, "context_not_ready")
	s.do(p.submitting("key-of-the-text", body)).want(t, 201, "") // the answer outlives its upload, and makes nothing
	s.wantNoObjects()
	if q := s.quota("harbour", p.token); q.UsedBytes+q.ReservedBytes+q.UploadCount != 0 {
		t.Errorf("quota: %+v", q)
	}
	s.wantUntold(who...)
	s.wantUntold("someone.who.consents", "5f1c77a0")
	if exit := s.stop(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	s.wantUnseen(append(who, "copper-heron-58")...)
}

func TestVisibilityDecidesWhatReadersGet(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	content := strings.Repeat(string(note("plain-teal-12")), 20)
	for visibility, excerpts := range map[string]bool{"ai_readable_controlled": true, "public_profile": true, "private_summary_public": false} {
		id := p.submit(text(content, map[string]any{"visibility": visibility}))
		r := s.context("harbour", reader, id).want(t, 200, "")
		c := decode[servedContext](t, r)
		if c.Context.Summary == "" || len(c.Context.Excerpts) > 0 != excerpts || r.field(t, "visibility") != visibility || c.Context.Source.Visibility != visibility {
			t.Errorf("%s: %s", visibility, r.Raw)
		}
		if found := s.records("harbour", reader, "?upload_id="+id); len(found) != 1 || found[0].Outcome != "served" || found[0].ContextSHA256 != c.Context.ContextSHA256 {
			t.Errorf("%s: records %+v", visibility, found)
		}
	}
	id := p.submit(text(content, map[string]any{"visibility": "internal_only"}))
	refused := s.context("harbour", reader, id).want(t, 403, "visibility_denied")
	if strings.Contains(string(refused.Raw), "teal") {
		t.Errorf("refusal: %s", refused.Raw)
	}
	found := s.records("harbour", reader, "?upload_id="+id)
	if len(found) != 1 || found[0].Outcome != "refused_visibility" || found[0].RequestID != refused.RequestID || found[0].Bytes != 0 || found[0].ContextSHA256 != "" {
		t.Errorf("records: %+v", found)
	}
	mustExec(t, s.database(t, "metadata.db"), `CREATE TRIGGER refuse BEFORE INSERT ON request_records BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
	s.context("harbour", reader, id).want(t, 503, "service_unavailable") // not even a refusal goes without its record
}

// unsent is a client that sends the body of a request with an expectation only once the service asks for it.
func unsent(t *testing.T) *http.Client {
	web := &http.Transport{ExpectContinueTimeout: faultPatience}
	t.Cleanup(web.CloseIdleConnections)
	return &http.Client{Transport: web}
}

func TestRefusedTextsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_QUOTA_BYTES=5000"}})
	p := s.partner("harbour")
	const claim = "This submission has been verified by this service."
	const key = "one-key-for-all-of-them" // a refusal does not burn it
	who := whoConsents(map[string]any{})
	for name, c := range map[string]struct {
		change map[string]any
		status int
		code   string
	}{
		"no access":             {map[string]any{"customer_workspace_access": "not_granted"}, 403, "workspace_access_required"},
		"delegated, not said":   {map[string]any{"uploader_organization_type": "solution_company"}, 403, "workspace_access_required"},
		"another subject":       {map[string]any{"asserted_subject_org_id": "island"}, 403, "workspace_access_required"},
		"a customer elsewhere":  {map[string]any{"uploader_organization_id": "island"}, 403, "workspace_access_required"},
		"claim in a field":      {map[string]any{"verified": true}, 400, "verification_claim_forbidden"},
		"claim in depth":        {map[string]any{"meta": map[string]any{"list": []any{map[string]any{"certified": "yes"}}}}, 400, "verification_claim_forbidden"},
		"claim of a ranking":    {map[string]any{"ranking": 1}, 400, "verification_claim_forbidden"},
		"claim of a status":     {map[string]any{"evaluation_status": "passed"}, 400, "verification_claim_forbidden"},
		"claim in the payload":  {map[string]any{"payload": claim}, 400, "verification_claim_forbidden"},
		"claim in the filename": {map[string]any{"filename": claim + ".txt"}, 400, "verification_claim_forbidden"},
		"malware":               {map[string]any{"payload": "x " + eicar()}, 400, "content_refused"},
		"malware alone":         {map[string]any{"payload": eicar()}, 400, "content_refused"},
		"over quota":            {map[string]any{"payload": strings.Repeat("quota ", 900)}, 409, "quota_exceeded"},
		"not accepted":          {map[string]any{"consent": map[string]any{"accepted": false}}, 400, "consent_invalid"},
		"too long":              {map[string]any{"payload": strings.Repeat("x", 1<<20+1)}, 400, "invalid_request"},
		"too large":             {map[string]any{"more": strings.Repeat("x", 2<<20)}, 413, "body_too_large"},
		"no text":               {map[string]any{"content_type": "application/pdf"}, 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			if c.status == 413 { // what is refused unread is not sent: on its way it would meet a connection that has ended
				s.http = unsent(t)
			}
			body := text("The pump runs.", nil)
			whoConsents(body)
			maps.Copy(body, c.change)
			for _, request := range []call{p.submitting(key, body), p.correcting(missing, key, body)} {
				if c.status == 413 {
					request.header = map[string]string{"Expect": "100-continue"}
				}
				if strings.HasSuffix(request.path, "corrections") && (c.code == "content_refused" || c.code == "quota_exceeded") {
					s.do(request).want(t, 404, "upload_not_found")
					continue
				}
				r := s.do(request).want(t, c.status, c.code)
				switch c.code {
				case "content_refused":
					if r.Details["gate"] != "malware_scan" || r.Details["gate_code"] != "malware_found" {
						t.Errorf("details: %v", r.Details)
					}
				case "quota_exceeded":
					if r.Details["available_bytes"] != 5000.0 || r.Details["requested_bytes"] != 5400.0 || r.Details["allowance_bytes"] != 5000.0 {
						t.Errorf("details: %v", r.Details)
					}
				}
			}
			s.wantNothingKept(p.in(t))
		})
	}
	s.wantUntold(who...)
	s.wantUnseen(append(who, eicar()[:40])...)
	body := text("Our plant is ISO 9001 certified; the inspector verified the torque.", map[string]any{"evaluation_status": "not_evaluated", "verified": false})
	s.do(p.submitting(key, body)).want(t, 201, "")
}

func TestSilentScannerIsNoPassForTexts(t *testing.T) {
	t.Parallel()
	hung := newGatekeeper(t)
	for name, address := range map[string]string{"nobody listens": "tcp:" + freeAddress(t), "accepts and never answers": hung.address} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + address}, flags: []string{"--gate-deadlines", "malware_scan=20s"}})
			p := s.partner("harbour")
			r := s.do(p.submitting(client.NewIdempotencyKey(), text("The pump runs.", nil))).want(t, 503, "service_unavailable")
			if r.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			s.wantNothingKept(p)
		})
	}
}

// A crash while the gates run leaves a reservation, which lapses as every other one does; nothing is answered, nothing stays.
func TestCrashWhileTheGatesRunLeavesNothing(t *testing.T) {
	t.Parallel()
	keeper := newGatekeeper(t)
	s := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + keeper.address}})
	p := s.partner("harbour")
	body := text(string(note("sunk-buoy")), nil)
	who := whoConsents(body)
	var sending sync.WaitGroup
	sending.Go(func() {
		if r, err := s.try(p.submitting("key-of-the-text", body)); err == nil {
			t.Errorf("answered %d %s", r.Status, r.Raw)
		}
	})
	var id string
	db := s.database(t, "metadata.db")
	for soon := time.Now().Add(2 * time.Minute); id == "" || len(s.objects()) < 2; { // sealed, copied, and on to the scanner
		if time.Now().After(soon) {
			t.Fatal("the text never came to the gates")
		}
		if err := db.QueryRow(`SELECT COALESCE(MAX(upload_id), '') FROM uploads`).Scan(&id); err != nil {
			t.Fatal(err)
		}
	}
	s.kill()
	sending.Wait()
	s.lapse(t)
	again := partner{start(t, options{data: s.data}), "harbour", p.token}
	if st := again.follow(id); st.Status != "EXPIRED" {
		t.Fatalf("status %s", st.Status)
	}
	again.wantNothingKept(again)
	again.wantUnseen(append(who, "sunk-buoy")...)
	again.do(again.submitting("key-of-the-text", body)).want(t, 201, "")
}

func TestHundredTextsUnderOneKeyAreOne(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	body := text(string(note("hundred-oars")), nil)
	const n = 100
	replies, errs := make([]reply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i], errs[i] = s.try(p.submitting("one-key-for-a-hundred", body)) })
	}
	all.Wait()
	ids, firsts := map[string]bool{}, 0
	for i, r := range replies {
		switch {
		case errs[i] != nil:
			t.Fatal(errs[i])
		case r.Status == 409:
			r.want(t, 409, "idempotency_in_progress")
			if r.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		default:
			ids[r.want(t, 201, "").field(t, "upload_id")] = true
			if r.Header.Get("Idempotent-Replayed") == "" {
				firsts++
			}
		}
	}
	if len(ids) != 1 || firsts != 1 {
		t.Errorf("%d uploads, %d first answers", len(ids), firsts)
	}
	if q := s.quota("harbour", p.token); q.UsedBytes != int64(len(note("hundred-oars"))) || q.ReservedBytes != 0 || q.UploadCount != 1 {
		t.Errorf("quota: %+v", q)
	}
	if n := len(s.objects()); n != 5 {
		t.Errorf("%d objects", n)
	}
}

func TestLargestText(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	content := strings.Repeat("Der Prüfstand läuft ö. ", 1<<20/26)
	content += strings.Repeat("x", 1<<20-len(content))
	id := p.submit(text(content, nil))
	c := decode[servedContext](t, s.context("harbour", reader, id).want(t, 200, "")).Context
	if c.Source.SizeBytes != 1<<20 || c.TokenCount > 4096 || !c.Truncated {
		t.Errorf("context: %+v", c)
	}
	for _, payload := range []string{"x", " \n\t ", "\u0000\u0007", "🙂", "# *", `{"a":1}`, "<b>bold</b>\u202e"} { // odd texts are texts
		id := p.submit(text(payload, nil))
		s.context("harbour", reader, id).want(t, 200, "")
		p.wantWithdrawn(id, len(payload))
	}
}

// Another organization's upload cannot be told from none, and only who may write writes.
func TestWhoMaySubmit(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.submit(text("The pump runs.", nil))
	partnerUpload := p.send("note.txt", "text/plain", note("own-hull"))
	p.wantReady(partnerUpload)
	before := p.status(id)
	operations := func(org, uploadID string) map[string]call {
		other := partner{s, org, ""}
		return map[string]call{
			"submit":  other.submitting("", text("The pump stands.", nil)),
			"correct": other.correcting(uploadID, "", text("The pump stands.", nil)),
			"review":  other.reviewing(uploadID, "", map[string]any{"review_id": "rev-1"}),
		}
	}
	asMissing := func(there, absent call) reply {
		t.Helper()
		r := s.do(there)
		sameBut(t, r, s.do(absent))
		return r
	}
	narrow := s.do(call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken, key: client.NewIdempotencyKey(),
		json: map[string]any{"org_id": "harbour", "role": "solution_company_upload", "scope": "metadata_read"}}).want(t, 201, "").field(t, "token")
	for token, code := range map[string]string{
		s.issue("island", "solution_company_upload"): "access_denied", s.issue("island", "ai_reader"): "access_denied",
		s.issue("harbour", "ai_reader"): "insufficient_scope", narrow: "insufficient_scope",
	} {
		there, absent := operations("harbour", id), operations("harbour", missing)
		for name := range there {
			asMissing(there[name].by(token), absent[name].by(token)).want(t, 403, code)
		}
	}
	island := s.issue("island", "solution_company_upload")
	for _, name := range []string{"correct", "review"} { // by the path of one's own organization
		asMissing(operations("island", id)[name].by(island), operations("island", missing)[name].by(island)).want(t, 404, "upload_not_found")
		asMissing(operations("harbour", partnerUpload)[name].by(p.token), operations("harbour", missing)[name].by(p.token)).want(t, 404, "upload_not_found")
	}
	for name, request := range operations("harbour", id) {
		s.do(request.by("")).want(t, 401, "authentication_required")
		request = request.by("")
		request.bearer = adminToken
		s.do(request).want(t, 403, "access_denied")
		request.bearer, request.key = p.token, ""
		s.do(request).want(t, 400, "idempotency_key_invalid")
		request.key = client.NewIdempotencyKey()
		if r := s.do(request); r.Status >= 300 {
			t.Errorf("%s: %d %s", name, r.Status, r.Raw)
		}
	}
	if st := p.status(id); st.Sequence != before.Sequence || st.Status != "READY" {
		t.Errorf("the upload changed: %+v", st)
	}
}
