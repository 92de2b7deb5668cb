package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

// document is 4½ parts of 64 KiB, the same bytes each time.
func document() []byte {
	content := make([]byte, 4*64<<10+1234)
	source := rand.NewChaCha8([32]byte{7})
	_, _ = source.Read(content)
	return content
}

func transferOf(content []byte) *client.Transfer {
	return client.NewTransfer(clienttest.Org, client.InitiateRequest{
		Filename: "record.bin", ContentType: "application/octet-stream", SizeBytes: int64(len(content)), Consent: consent(),
	})
}

func uploader(t *testing.T, service *clienttest.Service) *client.Uploader {
	t.Helper()
	return &client.Uploader{
		Client: newClient(t, service.URL, client.WithToken(clienttest.UploadToken)),
		Retry:  client.Retry{Attempts: 4, First: time.Millisecond, Longest: 2 * time.Millisecond},
	}
}

// countingFile counts the bytes read of it.
type countingFile struct {
	io.ReaderAt
	read atomic.Int64
}

func (f *countingFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, offset)
	f.read.Add(int64(n))
	return n, err
}

func TestUploadReadsTheFileOnce(t *testing.T) {
	service := newService(t)
	content := document()
	file := &countingFile{ReaderAt: bytes.NewReader(content)}
	u := uploader(t, service)
	var last client.Progress
	u.Progress = func(p client.Progress) {
		if p.Bytes > p.Total || p.Bytes < last.Bytes {
			t.Errorf("progress %+v after %+v", p, last)
		}
		last = p
	}
	completion, err := u.Upload(t.Context(), transferOf(content), file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(service.Bytes(completion.UploadID), content) || completion.SHA256 != client.TextSHA256(content) {
		t.Error("the service holds other bytes")
	}
	if got := file.read.Load(); got != int64(len(content)) {
		t.Errorf("read %d bytes of a file of %d", got, len(content))
	}
	if last.Phase != client.PhaseComplete || last.Bytes != last.Total {
		t.Errorf("ended at %+v", last)
	}
	if completion.Job == nil || completion.Job.Polling.Method != http.MethodGet || completion.Status != client.StatusProcessing {
		t.Errorf("completion: %+v", completion)
	}
}

func TestUploadSurvivesFaults(t *testing.T) {
	for name, faults := range map[string]map[string][]clienttest.Fault{
		"connection dropped in a part":   {"part": {{}, {DropAfter: 10_000}, {DropAfter: -1}}},
		"500 once":                       {"initiate": {{Status: 500}}, "part": {{Status: 500}}, "complete": {{Status: 502}}},
		"answer to initiate lost":        {"initiate": {{LoseAnswer: true}}},
		"answer to a part lost":          {"part": {{}, {LoseAnswer: true}}},
		"answer to the last part lost":   {"part": {{}, {}, {}, {}, {LoseAnswer: true}}},
		"answer to complete lost":        {"complete": {{LoseAnswer: true}}},
		"the first request still runs":   {"part": {{Status: 409, Code: "idempotency_in_progress"}}},
		"unavailable, then a lost reply": {"part": {{Status: 503}, {LoseAnswer: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			service := newService(t)
			for operation, list := range faults {
				service.Inject(operation, list...)
			}
			content := document()
			u := uploader(t, service)
			u.Progress = func(p client.Progress) {
				if p.Bytes > p.Total {
					t.Errorf("progress %+v", p)
				}
			}
			completion, err := u.Upload(t.Context(), transferOf(content), bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(service.Bytes(completion.UploadID), content) || service.Uploads() != 1 {
				t.Errorf("%d uploads, or other bytes", service.Uploads())
			}
			keys := map[string]int{}
			for _, call := range service.Calls("part") {
				if before, seen := keys[call.IdempotencyKey]; seen && before != call.PartNumber || len(call.IdempotencyKey) < 8 {
					t.Errorf("key %q serves parts %d and %d", call.IdempotencyKey, before, call.PartNumber)
				}
				keys[call.IdempotencyKey] = call.PartNumber
			}
			if len(keys) != 5 {
				t.Errorf("%d keys for 5 parts: a retry has to repeat its key", len(keys))
			}
		})
	}
}

func TestUploadEndsOnRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		operation string
		fault     clienttest.Fault
		attempts  int
	}{
		"conflict":               {"part", clienttest.Fault{Status: 409, Code: "part_conflict"}, 1},
		"not bound":              {"initiate", clienttest.Fault{Status: 401, Code: "credential_not_bound"}, 1},
		"digest":                 {"complete", clienttest.Fault{Status: 409, Code: "digest_mismatch"}, 1},
		"unavailable throughout": {"part", clienttest.Fault{Status: 503, Code: "unavailable"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			service := newService(t)
			service.Inject(test.operation, test.fault, test.fault, test.fault, test.fault)
			content := document()
			_, err := uploader(t, service).Upload(t.Context(), transferOf(content), bytes.NewReader(content))
			var refusal *client.Error
			if !errors.As(err, &refusal) || refusal.Code != test.fault.Code {
				t.Fatalf("got %v", err)
			}
			if got := len(service.Calls(test.operation)); got != test.attempts {
				t.Errorf("%d attempts, want %d", got, test.attempts)
			}
		})
	}
}

// interrupted runs an upload whose context is cancelled in part 3, and returns its transfer as another process would read it.
func interrupted(t *testing.T, service *clienttest.Service, content []byte) *client.Transfer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	service.Inject("part", clienttest.Fault{}, clienttest.Fault{}, clienttest.Fault{Before: cancel, DropAfter: 100})
	u := uploader(t, service)
	var note []byte
	u.Save = func(transfer *client.Transfer) error {
		var err error
		note, err = json.Marshal(transfer)
		return err
	}
	if _, err := u.Upload(ctx, transferOf(content), bytes.NewReader(content)); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	transfer := new(client.Transfer)
	if err := json.Unmarshal(note, transfer); err != nil {
		t.Fatal(err)
	}
	return transfer
}

func TestUploadResumes(t *testing.T) {
	service := newService(t)
	content := document()
	transfer := interrupted(t, service, content)
	if len(transfer.Parts) != 2 || transfer.AcceptedBytes() != 2*64<<10 {
		t.Fatalf("%d parts noted", len(transfer.Parts))
	}
	seen := len(service.Calls("part"))
	u := uploader(t, service)
	var phases []string
	u.Progress = func(p client.Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	}
	completion, err := u.Upload(t.Context(), transfer, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(service.Bytes(completion.UploadID), content) || service.Uploads() != 1 {
		t.Error("other bytes, or a second upload")
	}
	if sent := service.Calls("part")[seen:]; len(sent) != 3 || sent[0].PartNumber != 3 {
		t.Errorf("sent %d parts beginning with %d", len(sent), sent[0].PartNumber)
	}
	if len(phases) != 3 || phases[0] != client.PhaseVerify {
		t.Errorf("phases %v", phases)
	}
}

func TestResumeWithAnAcknowledgementLost(t *testing.T) {
	service := newService(t)
	content := document()
	transfer := interrupted(t, service, content)
	transfer.Parts = transfer.Parts[:1] // the service has two
	completion, err := uploader(t, service).Upload(t.Context(), transfer, bytes.NewReader(content))
	if err != nil || !bytes.Equal(service.Bytes(completion.UploadID), content) {
		t.Fatalf("%v", err)
	}
}

func TestResumeNoticesAChangedFile(t *testing.T) {
	content := document()
	for name, change := range map[string]func([]byte) []byte{
		"one bit in an accepted part": func(b []byte) []byte { b[70_000] ^= 1; return b },
		"shorter":                     func(b []byte) []byte { return b[:100_000] },
		"shorter in a part to come":   func(b []byte) []byte { return b[:200_000] },
	} {
		service := newService(t)
		transfer := interrupted(t, service, content)
		seen := len(service.Calls("complete"))
		_, err := uploader(t, service).Upload(t.Context(), transfer, bytes.NewReader(change(bytes.Clone(content))))
		if !errors.Is(err, client.ErrFileChanged) {
			t.Errorf("%s: %v", name, err)
		}
		if len(service.Calls("complete")) != seen {
			t.Errorf("%s: completed all the same", name)
		}
		if len(transfer.Parts) < 2 {
			t.Errorf("%s: forgot the accepted parts", name)
		}
	}
}

func TestResumeWhereNothingIsLeftToSend(t *testing.T) {
	service := newService(t)
	content := document()
	u := uploader(t, service)
	u.Retry.Attempts = 1
	// Twice: net/http itself repeats a request that carries an Idempotency-Key when a kept connection breaks.
	service.Inject("complete", clienttest.Fault{LoseAnswer: true}, clienttest.Fault{LoseAnswer: true})
	transfer := transferOf(content)
	if _, err := u.Upload(t.Context(), transfer, bytes.NewReader(content)); !client.Retryable(err) {
		t.Fatalf("lost answer: %v", err)
	}
	completion, err := u.Upload(t.Context(), transfer, bytes.NewReader(content))
	if err != nil || completion.Status != client.StatusProcessing || !transfer.Completed {
		t.Errorf("%+v, %v", completion, err)
	}
}

func TestResumeOfAnExpiredUpload(t *testing.T) {
	service := newService(t)
	content := document()
	transfer := interrupted(t, service, content)
	service.SetStatus(transfer.UploadID, client.StatusExpired)
	_, err := uploader(t, service).Upload(t.Context(), transfer, bytes.NewReader(content))
	var over *client.TransferOverError
	if !errors.As(err, &over) || over.Status != client.StatusExpired {
		t.Errorf("%v", err)
	}
}

func TestDamagedTransferIsRefused(t *testing.T) {
	service := newService(t)
	content := document()
	whole := interrupted(t, service, content)
	for name, damage := range map[string]func(*client.Transfer){
		"no key":         func(t *client.Transfer) { t.Key = "" },
		"no size":        func(t *client.Transfer) { t.Request.SizeBytes = 0 },
		"too large":      func(t *client.Transfer) { t.Request.SizeBytes = client.MaxUploadBytes + 1 },
		"no part size":   func(t *client.Transfer) { t.PartSizeBytes = 0 },
		"a part missing": func(t *client.Transfer) { t.Parts = t.Parts[1:] },
		"too many parts": func(t *client.Transfer) { t.Request.SizeBytes = 10 },
	} {
		transfer := *whole
		damage(&transfer)
		calls := len(service.Calls(""))
		if _, err := uploader(t, service).Upload(t.Context(), &transfer, bytes.NewReader(content)); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if len(service.Calls("")) != calls {
			t.Errorf("%s: a request was made", name)
		}
	}
}

func TestStalledConnectionIsRetried(t *testing.T) {
	service := newService(t)
	service.PartSizeBytes = 32 << 20 // more than the sockets' buffers hold
	content := make([]byte, 32<<20)
	release := make(chan struct{})
	service.Inject("part", clienttest.Fault{Before: func() { <-release }, DropAfter: -1})
	u := uploader(t, service)
	u.StallTimeout = 50 * time.Millisecond
	var reason error
	u.Retry.Notify = func(err error, _ time.Duration) {
		if reason == nil {
			reason = err
			close(release)
			u.StallTimeout = time.Minute
		}
	}
	if _, err := u.Upload(t.Context(), transferOf(content), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	var network *client.NetworkError
	if !errors.As(reason, &network) {
		t.Errorf("the stall was reported as %v", reason)
	}
}

func TestFileCheckedBeforeCompletion(t *testing.T) {
	service := newService(t)
	content := document()
	u := uploader(t, service)
	u.Unchanged = func() error { return client.ErrFileChanged }
	if _, err := u.Upload(t.Context(), transferOf(content), bytes.NewReader(content)); !errors.Is(err, client.ErrFileChanged) || len(service.Calls("complete")) != 0 {
		t.Errorf("%v, completed %d times", err, len(service.Calls("complete")))
	}
}

func TestFollow(t *testing.T) {
	for name, test := range map[string]struct {
		reject, fail, want string
		lines              int
	}{
		"ready":    {"", "", client.StatusReady, 12},
		"rejected": {"malware_scan", "", client.StatusRejected, 6},
		"failed":   {"", "extraction", client.StatusFailed, 8},
	} {
		t.Run(name, func(t *testing.T) {
			service := newService(t)
			service.Reject, service.Fail = test.reject, test.fail
			content := document()
			u := uploader(t, service)
			completion, err := u.Upload(t.Context(), transferOf(content), bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			service.Inject("status", clienttest.Fault{}, clienttest.Fault{Status: 503}, clienttest.Fault{DropAfter: -1}, clienttest.Fault{LoseAnswer: true})
			var seen []string
			last, err := u.Client.Follow(t.Context(), clienttest.Org, completion.UploadID, u.Retry, func(change client.Change) {
				for _, gate := range change.Gates {
					seen = append(seen, gate.Name+" "+gate.State)
				}
			})
			if err != nil || last.Status != test.want {
				t.Fatalf("%v, %v", last, err)
			}
			if (last.Failure != nil) != (test.want != client.StatusReady) {
				t.Errorf("failure %+v", last.Failure)
			}
			// The lost answer carried the first event, so the client may see two of them together.
			if len(seen) > test.lines || len(seen) < test.lines-1 {
				t.Errorf("%d changes of gates: %v", len(seen), seen)
			}
			calls := service.Calls("status")
			if header := calls[len(calls)-1].Header; header.Get("Prefer") != "wait=30" || header.Get("If-None-Match") == "" {
				t.Errorf("followed with %v", header)
			}
		})
	}
}

// BenchmarkUploader sends 64 MiB in parts of 16 MiB to a service in the same process that hashes them as well.
func BenchmarkUploader(b *testing.B) {
	service := clienttest.NewService()
	defer service.Close()
	service.PartSizeBytes = 16 << 20
	service.AllowanceBytes = 1 << 50
	content := make([]byte, 64<<20)
	c, err := client.New(service.URL, client.WithToken(clienttest.UploadToken))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		u := client.Uploader{Client: c}
		completion, err := u.Upload(b.Context(), transferOf(content), bytes.NewReader(content))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.WithdrawUpload(b.Context(), clienttest.Org, completion.UploadID, client.WithdrawRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHash is the bound that hashing alone would set: the part's digest and the file's.
func BenchmarkHash(b *testing.B) {
	block := make([]byte, 256<<10)
	part, whole := sha256.New(), sha256.New()
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		part.Write(block)
		whole.Write(block)
	}
}

// A service that repeats its answer to a known Idempotency-Key need not read the part again.
func TestPartAnsweredBeforeItWasRead(t *testing.T) {
	content := make([]byte, 24<<20)
	_, _ = rand.NewChaCha8([32]byte{9}).Read(content)
	declared := make(chan client.CompleteRequest, 1)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, data any) {
		if err := json.NewEncoder(w).Encode(map[string]any{"request_id": "r", "trace_id": "t", "data": data}); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("POST /api/v1/organizations/harbour/partner-uploads/initiate", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"upload_id": "up_1", "part_size_bytes": 16 << 20})
	})
	mux.HandleFunc("PUT /api/v1/organizations/harbour/partner-uploads/up_1/parts/{n}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"upload_id": "up_1"})
	})
	mux.HandleFunc("POST /api/v1/organizations/harbour/partner-uploads/up_1/complete", func(w http.ResponseWriter, r *http.Request) {
		var request client.CompleteRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		declared <- request
		answer(w, map[string]any{"upload_id": "up_1", "status": "PROCESSING"})
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	u := client.Uploader{
		Client: newClient(t, server.URL, client.WithToken("acc_token")),
		// The connection may break before its answer is seen; that is repeated like any other break.
		Retry: client.Retry{Attempts: 50, First: time.Millisecond, Longest: 2 * time.Millisecond},
	}
	if _, err := u.Upload(t.Context(), transferOf(content), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	request := <-declared
	if request.ClientFileSHA256 != client.TextSHA256(content) || request.Parts[1].SHA256 != client.TextSHA256(content[16<<20:]) {
		t.Error("the declared digests are not the file's")
	}
}
