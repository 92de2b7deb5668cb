package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/accession/accession/client"
)

func webhookOf(org string) string { return "/admin/organizations/" + url.PathEscape(org) + "/webhook" }

// hookFlags let a service post to this machine, and come back soon. A receiver that a busy machine holds up is waited for: a post that is given
// up comes twice.
var hookFlags = []string{"--webhook-private-addresses", "allow", "--webhook-retry-delays", "20ms,50ms", "--webhook-timeout", "1m"}

// posted is one request that a receiver saw.
type posted struct {
	ID, Event, UploadID string
	Sequence            int64
	Status              string
	Header              http.Header
	Body                []byte
	Answer              int // what it was answered; 0: nothing
}

// receiver stands where an organization takes its events.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	seen    []posted
	arrived chan struct{} // closed at the next arrival
	answer  func(p posted) int
}

// receive starts one that answers 202, unless answer says otherwise; 0 hangs until the sender goes away, -1 breaks off.
func receive(t testing.TB, answer func(p posted) int) *receiver {
	r := &receiver{arrived: make(chan struct{}), answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender was killed: it did not post this
	}
	var about struct {
		Event    string `json:"event"`
		UploadID string `json:"upload_id"`
		Sequence int64  `json:"sequence"`
		Status   string `json:"status"`
	}
	_ = json.Unmarshal(body, &about) // an event without them is seen without them
	p := posted{request.Header.Get("webhook-id"), about.Event, about.UploadID, about.Sequence, about.Status, request.Header.Clone(), body, http.StatusAccepted}
	r.mu.Lock()
	if r.answer != nil {
		p.Answer = r.answer(p)
	}
	r.seen = append(r.seen, p)
	close(r.arrived)
	r.arrived = make(chan struct{})
	r.mu.Unlock()
	switch p.Answer {
	case 0:
		<-request.Context().Done()
	case -1:
		panic(http.ErrAbortHandler)
	case http.StatusFound:
		w.Header().Set("Location", "/elsewhere")
		fallthrough
	default:
		w.WriteHeader(p.Answer)
	}
}

// until waits until what was seen is enough, and returns it.
func (r *receiver) until(t testing.TB, what string, enough func([]posted) bool) []posted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		r.mu.Lock()
		seen, arrived := append([]posted(nil), r.seen...), r.arrived
		r.mu.Unlock()
		if enough(seen) {
			return seen
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			t.Fatalf("%s did not arrive; %d posts: %s", what, len(seen), summary(seen))
		}
	}
}

func summary(seen []posted) string {
	var lines []string
	for _, p := range seen {
		lines = append(lines, string(p.Body)+" ("+http.StatusText(p.Answer)+")")
	}
	return strings.Join(lines, "\n")
}

func arrivedAs(uploadID, status string) func([]posted) bool {
	return func(seen []posted) bool {
		for _, p := range seen {
			if p.UploadID == uploadID && p.Status == status && p.Answer == http.StatusAccepted {
				return true
			}
		}
		return false
	}
}

// setWebhook sets org's, and returns the secret where it is new.
func (s *service) setWebhook(org, address string) (secret string) {
	s.t.Helper()
	var w struct{ Secret string }
	r := s.do(call{method: "PUT", path: webhookOf(org), bearer: adminToken, key: client.NewIdempotencyKey(), json: map[string]any{"url": address}}).want(s.t, 200, "")
	w = decode[struct{ Secret string }](s.t, r)
	return w.Secret
}

func (s *service) deliveries(org, state string) client.DeliveryList {
	s.t.Helper()
	path := webhookOf(org) + "/deliveries?limit=100"
	if state != "" {
		path += "&state=" + state
	}
	return decode[client.DeliveryList](s.t, s.do(call{method: "GET", path: path, bearer: adminToken}).want(s.t, 200, ""))
}

func wantSigned(t testing.TB, secret string, p posted) {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.Verify(p.Body, p.Header); err != nil {
		t.Errorf("%s does not verify: %v", p.ID, err)
	}
}

func TestWebhookTellsEveryEvent(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: hookFlags})
	hook := receive(t, nil)
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	early := p.submit(text("The pump stood before anybody listened.", nil))
	secret := s.setWebhook("harbour", hook.URL+"/hook?token=quiet")
	if !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("the secret is %q", secret)
	}
	if again := s.setWebhook("harbour", hook.URL+"/hook?token=quiet"); again != "" {
		t.Error("a secret is shown twice")
	}
	ids := map[string]string{"partner": p.send("note.txt", "text/plain", note("reed-bunting")), "text": p.submit(text("The pump runs.", nil))}
	ids["correction"] = p.correct(ids["text"], "The pump runs again.")
	p.wantReady(ids["partner"])
	db := s.database(t, "metadata.db")
	for what, id := range ids {
		seen := hook.until(t, what, arrivedAs(id, "READY"))
		var sequence int64
		for _, e := range seen {
			if e.UploadID != id {
				continue
			}
			if sequence++; e.Sequence != sequence {
				t.Errorf("%s: %d came where %d belongs", what, e.Sequence, sequence)
			}
			wantSigned(t, secret, e)
			var body map[string]any
			if err := json.Unmarshal(e.Body, &body); err != nil {
				t.Fatal(err)
			}
			var id, status, stage, request, trace string
			if err := db.QueryRow(`SELECT event_id, status, stage, request_id, trace_id FROM status_events WHERE upload_id = ? AND sequence = ?`, e.UploadID, e.Sequence).
				Scan(&id, &status, &stage, &request, &trace); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"event_id": id, "upload_id": e.UploadID, "sequence": float64(e.Sequence), "status": status, "stage": stage, "request_id": request, "trace_id": trace}
			for name, value := range want {
				if value == "" {
					value = nil
				}
				if body[name] != value {
					t.Errorf("%s: %s is %v, want %v", what, name, body[name], value)
				}
			}
			if _, err := time.Parse(time.RFC3339, body["occurred_at"].(string)); err != nil || body["pipeline_id"] == "" || len(body) > 9 || e.ID != id {
				t.Errorf("%s: %s under webhook-id %s", what, e.Body, e.ID)
			}
		}
	}
	for _, e := range hook.until(t, "anything", func([]posted) bool { return true }) {
		if e.UploadID == early {
			t.Errorf("an event from before the webhook was set: %s", e.Body)
		}
	}

	// A withdrawal recalls what was served, right after it says so.
	served := decode[servedContext](t, s.context("harbour", reader, ids["partner"]).want(t, 200, ""))
	p.withdraw(ids["partner"]).want(t, 200, "")
	p.withdraw(ids["text"]).want(t, 200, "") // never served: nothing to recall
	hook.until(t, "withdrawal", arrivedAs(ids["text"], "WITHDRAWN"))
	seen := hook.until(t, "withdrawal", arrivedAs(ids["partner"], "WITHDRAWN"))
	var order []string
	for _, e := range seen {
		if e.UploadID == ids["text"] && e.Event != "" {
			t.Errorf("a recall of what nobody was served: %s", e.Body)
		}
		if e.UploadID != ids["partner"] || e.Status != "" && !strings.HasPrefix(e.Status, "WITHDR") {
			continue
		}
		order = append(order, e.Status+e.Event)
		if e.Event != "" {
			var recall client.ContextRecalled
			if err := json.Unmarshal(e.Body, &recall); err != nil || recall.Reason != "withdrawn" || recall.OrgID != "harbour" || recall.Servings != 1 ||
				len(recall.ContextSHA256s) != 1 || recall.ContextSHA256s[0] != served.Context.ContextSHA256 || len(recall.CredentialIDs) != 1 || recall.EventID != e.ID {
				t.Errorf("recall %s: %v", e.Body, err)
			}
			wantSigned(t, secret, e)
		}
	}
	if got := strings.Join(order, " "); got != "WITHDRAWING contextRecalled WITHDRAWN" {
		t.Errorf("it came as %q", got)
	}
	if strings.Contains(s.log.String(), "token=quiet") {
		t.Error("the log holds a callback address")
	}
}

func TestWebhookByCommand(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: hookFlags})
	answers := make(chan int, 1)
	answers <- 202
	hook := receive(t, func(posted) int { a := <-answers; answers <- a; return a })
	now := func(status int) { <-answers; answers <- status }
	p := s.partner("harbour")
	s.wantCLI(4, "", "webhooks", "test", "--org", "harbour")
	out, _ := s.wantCLI(0, "", "webhooks", "set", "--org", "harbour", hook.URL)
	_, secret, _ := strings.Cut(out, "secret")
	secret, _, _ = strings.Cut(strings.TrimSpace(secret), "\n")
	if out, _ := s.wantCLI(0, "", "webhooks", "test", "--org", "harbour"); !strings.Contains(out, "accepted 202") {
		t.Errorf("test: %s", out)
	}
	first := hook.until(t, "test event", func(seen []posted) bool { return len(seen) == 1 })[0]
	if first.Event != "webhookTest" {
		t.Errorf("test event: %s", first.Body)
	}
	wantSigned(t, secret, first)

	// Two signatures while the secret rotates, by both secrets.
	out, _ = s.wantCLI(0, "", "webhooks", "rotate", "--org", "harbour")
	_, next, _ := strings.Cut(out, "secret")
	next, _, _ = strings.Cut(strings.TrimSpace(next), "\n")
	id := p.submit(text("The pump runs.", nil))
	for _, e := range hook.until(t, "text", arrivedAs(id, "READY"))[1:] {
		if n := len(strings.Fields(e.Header.Get("webhook-signature"))); n != 2 || next == secret {
			t.Errorf("%d signatures", n)
		}
		wantSigned(t, secret, e)
		wantSigned(t, next, e)
	}
	s.wantCLI(0, "", "webhooks", "rotate", "--org", "harbour", "--overlap", "0")

	// 400: dead at once and replayable; the next events go on.
	db := s.database(t, "metadata.db")
	now(400)
	refused := p.submit(text("The pump stands.", nil))
	s.awaitDeliveries("harbour", "dead", count(t, db, `SELECT COUNT(*) FROM status_events WHERE upload_id = $1`, refused))
	now(202)
	if out, _ := s.wantCLI(0, "", "webhooks", "list", "--org", "harbour"); !strings.Contains(out, " dead") || strings.Contains(out, " 0 dead") {
		t.Errorf("list: %s", out)
	}
	if out, _ := s.wantCLI(0, "", "webhooks", "list", "--org", "harbour", "--state", "dead"); !strings.Contains(out, "refused 400") || !strings.Contains(out, refused) {
		t.Errorf("log: %s", out)
	}
	s.wantCLI(0, "", "webhooks", "replay", "--org", "harbour")
	seen := hook.until(t, "replay", arrivedAs(refused, "READY"))
	if n := len(strings.Fields(seen[len(seen)-1].Header.Get("webhook-signature"))); n != 1 {
		t.Errorf("%d signatures after the overlap", n)
	}

	// 410: nothing more until it is set again, and nothing is lost.
	now(410)
	waiting := p.submit(text("The pump waits.", nil))
	hook.until(t, "410", func(seen []posted) bool { return seen[len(seen)-1].Answer == 410 })
	s.awaitWebhook("harbour", func(w client.Webhook) bool { return w.State == "disabled" })
	if w := s.webhook("harbour"); w.Pending == 0 || w.Dead != 0 {
		t.Errorf("disabled: %+v pending %d dead %d", w, w.Pending, w.Dead)
	}
	now(202)
	s.wantCLI(0, "", "webhooks", "set", "--org", "harbour", hook.URL)
	hook.until(t, "what waited", arrivedAs(waiting, "READY"))

	// An upload from before can be asked for.
	before := len(hook.until(t, "all", func([]posted) bool { return true }))
	s.wantCLI(0, "", "webhooks", "replay", "--org", "harbour", "--upload", id)
	hook.until(t, "replayed upload", func(seen []posted) bool { return len(seen) > before && arrivedAs(id, "READY")(seen[before:]) })

	out, _ = s.wantCLI(0, "", "webhooks", "delete", "--org", "harbour")
	if !strings.Contains(out, "deleted") {
		t.Errorf("delete: %s", out)
	}
	s.wantCLI(4, "", "webhooks", "replay", "--org", "harbour")
	if n := count(t, s.database(t, "keys.db"), `SELECT COUNT(*) FROM signing_keys WHERE purpose LIKE 'webhook:%' AND (retired_at = 0 OR length(wrapped) > 0)`); n != 0 {
		t.Errorf("%d secrets outlive their webhook", n)
	}
	for _, action := range []string{"webhook_set", "webhook_tested", "webhook_secret_rotated", "webhook_replayed", "webhook_disabled", "webhook_deleted"} {
		if count(t, db, `SELECT COUNT(*) FROM audit_lines WHERE org_id = 'harbour' AND action = $1`, action) == 0 {
			t.Errorf("no audit line says %s", action)
		}
	}
}

func (s *service) webhook(org string) client.Webhook {
	s.t.Helper()
	list := decode[client.WebhookList](s.t, s.do(call{method: "GET", path: "/admin/webhooks?org_id=" + org, bearer: adminToken}).want(s.t, 200, ""))
	if len(list.Webhooks) != 1 {
		s.t.Fatalf("%d webhooks", len(list.Webhooks))
	}
	return list.Webhooks[0]
}

// lookAgain is how long a test waits before it asks again for what tells nobody of its change: no more often than anybody may.
const lookAgain = 50 * time.Millisecond

func (s *service) awaitWebhook(org string, is func(client.Webhook) bool) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(s.webhook(org)); time.Sleep(lookAgain) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the webhook stays %+v", s.webhook(org))
		}
	}
}

func (s *service) awaitDeliveries(org, state string, atLeast int) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); len(s.deliveries(org, state).Deliveries) < atLeast; time.Sleep(lookAgain) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d deliveries are %s", len(s.deliveries(org, state).Deliveries), state)
		}
	}
}

// Without the operator's word nothing inside can be reached, whatever the address looks like.
func TestWebhookKeepsToPublicAddresses(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for _, address := range []string{
		"http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:169.254.169.254]/", "https://10.0.0.1/", "https://localhost/",
		"https://user:pass@hooks.example/", "https://hooks.example:22/", "ftp://hooks.example/", "//hooks.example/", "https://hooks.example/#part", "hooks",
	} {
		r := s.do(call{method: "PUT", path: webhookOf("harbour"), bearer: adminToken, key: client.NewIdempotencyKey(), json: map[string]any{"url": address}}).want(t, 400, "invalid_request")
		if !strings.Contains(string(r.Raw), `"/url"`) || strings.Contains(string(r.Raw), "user:pass") {
			t.Errorf("%s: %s", address, r.Raw)
		}
	}
	// What the name leads to is looked at when it is connected to; without names there is no connection at all.
	s.setWebhook("harbour", "https://accession.invalid/")
	tested := decode[client.WebhookTest](t, s.do(call{method: "POST", path: webhookOf("harbour") + "/test", bearer: adminToken, key: client.NewIdempotencyKey()}).want(t, 200, ""))
	if tested.Outcome != "no_connection" && tested.Outcome != "timeout" && tested.Outcome != "address_refused" {
		t.Errorf("the test event: %+v", tested)
	}
}

// The verifiers of Standard Webhooks' own package and of Svix take what the service posts.
func TestNodeWebhookVerifiers(t *testing.T) {
	t.Parallel()
	dir := npmProject(t, "testdata/webhooks")
	s := start(t, options{flags: hookFlags})
	hook := receive(t, nil)
	secret := s.setWebhook("harbour", hook.URL)
	id := s.partner("harbour").submit(text("Gänsefüßchen, €, 水.", nil))
	seen := hook.until(t, "text", arrivedAs(id, "READY"))
	type delivery struct {
		Secret, Body, ID, Timestamp, Signature string
	}
	var all []delivery
	for _, e := range seen {
		all = append(all, delivery{secret, base64.StdEncoding.EncodeToString(e.Body), e.ID, e.Header.Get("webhook-timestamp"), e.Header.Get("webhook-signature")})
	}
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "verify.mjs"))
	cmd.Stdin = strings.NewReader(string(input))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var verified struct{ StandardWebhooks, Svix, Forged int }
	if err := json.Unmarshal(out, &verified); err != nil || verified.StandardWebhooks != len(all) || verified.Svix != len(all) || verified.Forged != 0 {
		t.Errorf("of %d deliveries: %s", len(all), out)
	}
}
