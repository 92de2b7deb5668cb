package client_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

const (
	hookSecret  = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	otherSecret = "whsec_OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk="
)

func event(t *testing.T, secret, id string, at time.Time, body string) *http.Request {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	r := httptest.NewRequest("POST", "/", bytes.NewReader([]byte(body)))
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", stamp)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return r
}

func changed(id, upload string, sequence int, status string) string {
	return fmt.Sprintf(`{"event_id":%q,"upload_id":%q,"sequence":%d,"status":%q,"occurred_at":"2026-11-20T09:30:00.000Z"}`, id, upload, sequence, status)
}

type inbox struct {
	mu      sync.Mutex
	changes []client.StatusChanged
	recalls []client.ContextRecalled
	err     error
}

func (i *inbox) receiver() *client.Receiver {
	return &client.Receiver{
		Secrets: []string{hookSecret},
		Status: func(_ context.Context, e client.StatusChanged) error {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.err == nil {
				i.changes = append(i.changes, e)
			}
			return i.err
		},
		Recall: func(_ context.Context, e client.ContextRecalled) error {
			i.recalls = append(i.recalls, e)
			return i.err
		},
	}
}

func answerTo(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestReceiverTakesEachEventOnceAndInOrder(t *testing.T) {
	var in inbox
	r := in.receiver()
	send := func(id string, sequence int) int {
		return answerTo(r, event(t, hookSecret, id, time.Now(), changed(id, "up_1", sequence, "PROCESSING")))
	}
	for i, c := range []struct {
		id       string
		sequence int
		want     int
	}{{"evt_1", 1, 202}, {"evt_1", 1, 409}, {"evt_2", 2, 202}, {"evt_9", 2, 409}, {"evt_1", 1, 409}, {"evt_5", 5, 202}, {"evt_4", 4, 409}, {"evt_6", 6, 202}} {
		if got := send(c.id, c.sequence); got != c.want {
			t.Errorf("step %d: %d, want %d", i, got, c.want)
		}
	}
	if len(in.changes) != 4 || in.changes[3].Sequence != 6 {
		t.Errorf("it passed on %+v", in.changes)
	}
	in.err = errors.New("disk full")
	if got := send("evt_7", 7); got != 503 {
		t.Errorf("what could not be taken: %d", got)
	}
	in.err = nil
	if got := send("evt_7", 7); got != 202 {
		t.Errorf("again: %d", got)
	}
}

func TestReceiverRefusesForgeries(t *testing.T) {
	var in inbox
	good := func() *http.Request {
		return event(t, hookSecret, "evt_1", time.Now(), changed("evt_1", "up_1", 1, "READY"))
	}
	for name, spoil := range map[string]func(r *http.Request) *http.Request{
		"another secret": func(*http.Request) *http.Request {
			return event(t, otherSecret, "evt_1", time.Now(), changed("evt_1", "up_1", 1, "READY"))
		},
		"another body": func(r *http.Request) *http.Request {
			forged := httptest.NewRequest("POST", "/", strings.NewReader(changed("evt_1", "up_2", 1, "READY")))
			forged.Header = r.Header
			return forged
		},
		"another id": func(r *http.Request) *http.Request { r.Header.Set("webhook-id", "evt_2"); return r },
		"an id that is not the event's": func(*http.Request) *http.Request {
			return event(t, hookSecret, "evt_2", time.Now(), changed("evt_1", "up_1", 1, "READY"))
		},
		"old": func(*http.Request) *http.Request {
			return event(t, hookSecret, "evt_1", time.Now().Add(-6*time.Minute), changed("evt_1", "up_1", 1, "READY"))
		},
		"from the future": func(*http.Request) *http.Request {
			return event(t, hookSecret, "evt_1", time.Now().Add(6*time.Minute), changed("evt_1", "up_1", 1, "READY"))
		},
		"another version": func(r *http.Request) *http.Request {
			r.Header.Set("webhook-signature", strings.Replace(r.Header.Get("webhook-signature"), "v1,", "v2,", 1))
			return r
		},
		"no signature": func(r *http.Request) *http.Request { r.Header.Del("webhook-signature"); return r },
		"no time":      func(r *http.Request) *http.Request { r.Header.Del("webhook-timestamp"); return r },
		"no sequence": func(*http.Request) *http.Request {
			return event(t, hookSecret, "evt_1", time.Now(), changed("evt_1", "up_1", 0, "READY"))
		},
		"no JSON": func(*http.Request) *http.Request { return event(t, hookSecret, "evt_1", time.Now(), "evt_1") },
		"too much": func(*http.Request) *http.Request {
			return event(t, hookSecret, "evt_1", time.Now(), strings.Repeat(" ", 2<<20))
		},
	} {
		if got := answerTo(in.receiver(), spoil(good())); got != 400 {
			t.Errorf("%s: %d", name, got)
		}
	}
	for name, secrets := range map[string][]string{"no secret": nil, "an empty one": {""}, "whsec_ alone": {"whsec_"}, "a short one": {"whsec_MTIz"}, "not base64": {"whsec_!"}} {
		r := in.receiver()
		r.Secrets = secrets
		if got := answerTo(r, good()); got != 400 {
			t.Errorf("%s: %d", name, got)
		}
	}
	if len(in.changes) != 0 {
		t.Errorf("it passed on %+v", in.changes)
	}
	r := in.receiver()
	r.Secrets = []string{otherSecret, hookSecret} // while it rotates
	if got := answerTo(r, good()); got != 202 {
		t.Errorf("two secrets: %d", got)
	}
	if got := answerTo(r, httptest.NewRequest("GET", "/", nil)); got != 405 {
		t.Errorf("GET: %d", got)
	}
}

func TestReceiverTakesRecallsAndTests(t *testing.T) {
	var in inbox
	r := in.receiver()
	recall := `{"event":"contextRecalled","event_id":"evt_1","upload_id":"up_1","org_id":"harbour","reason":"withdrawn","recalled_at":"2026-11-20T09:30:00Z","servings":2,"context_sha256s":["ab"],"credential_ids":["cred_1"]}`
	for _, c := range []struct {
		id, body string
		want     int
	}{
		{"evt_1", recall, 202}, {"evt_1", recall, 409}, {"evt_2", `{"event":"webhookTest","event_id":"evt_2"}`, 202},
		{"evt_3", `{"event":"somethingNew","event_id":"evt_3"}`, 202}, {"evt_4", `{"event":"contextRecalled","event_id":"evt_4"}`, 400},
	} {
		if got := answerTo(r, event(t, hookSecret, c.id, time.Now(), c.body)); got != c.want {
			t.Errorf("%s: %d, want %d", c.body, got, c.want)
		}
	}
	if len(in.recalls) != 1 || in.recalls[0].Reason != "withdrawn" || in.recalls[0].ContextSHA256s[0] != "ab" || len(in.changes) != 0 {
		t.Errorf("it passed on %+v and %+v", in.recalls, in.changes)
	}
}

// What never came is read from the status operation, which stands for all events up to its own.
func TestReceiverRecoversGaps(t *testing.T) {
	service := clienttest.NewService()
	defer service.Close()
	c, err := client.New(service.URL, client.WithToken(clienttest.UploadToken))
	if err != nil {
		t.Fatal(err)
	}
	upload, err := c.InitiateUpload(t.Context(), clienttest.Org, client.InitiateRequest{
		Filename: "a.txt", ContentType: "text/plain", SizeBytes: 5,
		Consent:        client.Consent{Accepted: true, AgreementVersion: "1", ConsentVersion: "1", TextSHA256: client.TextSHA256(nil), ConsentingUserID: "u", ConsentingUserEmail: "u@example.org", AcceptedAt: time.Now()},
		IdempotencyKey: client.NewIdempotencyKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	id := upload.UploadID
	for _, status := range []string{"RECEIVING", "PROCESSING", "PROCESSING", "READY"} {
		service.SetStatus(id, status)
	}
	var in inbox
	r := in.receiver()
	r.Client, r.Org = c, clienttest.Org
	send := func(name string, sequence int) int {
		return answerTo(r, event(t, hookSecret, name, time.Now(), changed(name, id, sequence, "PROCESSING")))
	}
	service.Inject("status", clienttest.Fault{Status: 500})
	for i, c := range []struct {
		name     string
		sequence int
		want     int
	}{{"evt_1", 1, 202}, {"evt_3", 3, 503}, {"evt_3", 3, 202}, {"evt_2", 2, 409}, {"evt_5", 5, 409}, {"evt_6", 6, 202}} {
		if got := send(c.name, c.sequence); got != c.want {
			t.Errorf("step %d: %d, want %d", i, got, c.want)
		}
	}
	if len(in.changes) != 3 || in.changes[1].Recovered == nil || in.changes[1].Sequence != 5 || in.changes[1].Status != "READY" || in.changes[1].EventID != "" || in.changes[2].Recovered != nil {
		t.Errorf("it passed on %+v", in.changes)
	}
}

// Many deliveries at once, each several times: each event is passed on once, those of an upload in order.
func TestReceiverUnderLoad(t *testing.T) {
	var in inbox
	r := in.receiver()
	var sending sync.WaitGroup
	for upload := range 8 {
		sending.Go(func() {
			for sequence := 1; sequence <= 20; sequence++ {
				id := fmt.Sprintf("evt_%d_%d", upload, sequence)
				var twice sync.WaitGroup
				for range 3 {
					twice.Go(func() {
						answerTo(r, event(t, hookSecret, id, time.Now(), changed(id, fmt.Sprintf("up_%d", upload), sequence, "PROCESSING")))
					})
				}
				twice.Wait()
			}
		})
	}
	sending.Wait()
	last := map[string]int64{}
	for _, e := range in.changes {
		if e.Sequence != last[e.UploadID]+1 {
			t.Errorf("%s: %d after %d", e.UploadID, e.Sequence, last[e.UploadID])
		}
		last[e.UploadID] = e.Sequence
	}
	if len(in.changes) != 160 {
		t.Errorf("%d changes", len(in.changes))
	}
}

func ExampleReceiver() {
	receiver := &client.Receiver{
		Secrets: []string{"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}, // as accession webhooks set showed it
		Status: func(_ context.Context, e client.StatusChanged) error {
			fmt.Println(e.UploadID, e.Status)
			return nil
		},
		Recall: func(_ context.Context, e client.ContextRecalled) error {
			fmt.Println("drop", e.ContextSHA256s)
			return nil
		},
	}
	server := httptest.NewServer(receiver) // in earnest: http.ListenAndServeTLS
	defer server.Close()
	answer, err := http.Post(server.URL, "application/json", strings.NewReader(`{"event_id":"evt_forged"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.StatusCode)
	// Output: 400
}

// Who only wants to hear of recalls takes the rest all the same: it would come again for days.
func TestReceiverOfRecallsAlone(t *testing.T) {
	var in inbox
	r := in.receiver()
	r.Status = nil
	if got := answerTo(r, event(t, hookSecret, "evt_1", time.Now(), changed("evt_1", "up_1", 1, "READY"))); got != 202 {
		t.Errorf("a change of status: %d", got)
	}
	if got := answerTo(r, event(t, hookSecret, "evt_2", time.Now(), `{"event":"contextRecalled","event_id":"evt_2","upload_id":"up_1"}`)); got != 202 || len(in.recalls) != 1 {
		t.Errorf("a recall: %d, %+v", got, in.recalls)
	}
}
