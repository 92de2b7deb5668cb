package clienttest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The organization and tokens every Service knows.
const (
	Org         = "harbour"
	UploadToken = "acc_upload-token-for-tests-only"
	ReaderToken = "acc_reader-token-for-tests-only"
	AdminToken  = "admin-token-for-tests-only-0123456789"
)

// Gates are the names of the six gates, in order.
var Gates = []string{"integrity", "quarantine", "malware_scan", "extraction", "controlled_summary", "ai_context"}

// Service is the stand-in. Set the exported fields before the first request.
type Service struct {
	URL string
	// PartSizeBytes given at initiate; 64 KiB.
	PartSizeBytes int64
	// AllowanceBytes of the organization; 1 GiB.
	AllowanceBytes int64
	// Reject and Fail name a gate that ends the upload as REJECTED or FAILED.
	Reject, Fail string

	server  *httptest.Server
	mu      sync.Mutex
	faults  map[string][]Fault
	calls   []Call
	served  map[string]*served
	custody map[string]*upload
	order   int
	records []map[string]any  // oldest first
	granted map[string]string // access tokens: whose they are
	key     ed25519.PrivateKey
}

// Call is one request the service saw, for assertions.
type Call struct {
	Operation      string // as in Inject
	IdempotencyKey string
	PartNumber     int
	Header         http.Header
}

type upload struct {
	id, org, filename, contentType, status string
	size, received, sequence               int64
	parts                                  []string // digests
	partSizes                              []int64
	whole                                  []byte
	gates                                  []map[string]any
	step                                   int
	failure                                map[string]any
	created, withdrawn                     time.Time
}

// served is the first answer to an Idempotency-Key.
type served struct {
	request string
	status  int
	data    any
}

// NewService starts a service on the loopback interface. Close it.
func NewService() *Service {
	s := &Service{
		PartSizeBytes: 64 << 10, AllowanceBytes: 1 << 30,
		faults: map[string][]Fault{}, served: map[string]*served{}, custody: map[string]*upload{}, granted: map[string]string{},
		key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
	}
	mux := http.NewServeMux()
	org := "/api/v1/organizations/{org}"
	mux.HandleFunc("POST /admin/tenant-keys/issue", s.operation("issue", s.issue))
	mux.HandleFunc("POST "+org+"/partner-uploads/initiate", s.operation("initiate", s.initiate))
	mux.HandleFunc("PUT "+org+"/partner-uploads/{upload}/parts/{part}", s.operation("part", s.part))
	mux.HandleFunc("POST "+org+"/partner-uploads/{upload}/complete", s.operation("complete", s.complete))
	mux.HandleFunc("GET "+org+"/partner-uploads/{upload}", s.operation("status", s.status))
	mux.HandleFunc("POST "+org+"/partner-uploads/{upload}/withdraw", s.operation("withdraw", s.withdraw))
	mux.HandleFunc("GET "+org+"/ai-context/{upload}", s.operation("context", s.aiContext))
	mux.HandleFunc("GET "+org+"/quota", s.operation("quota", s.quota))
	mux.HandleFunc("GET "+org+"/request-records", s.operation("records", s.requestRecords))
	mux.HandleFunc("GET "+org+"/withdrawals/{receipt}", s.operation("receipt", s.receipt))
	mux.HandleFunc("POST /oauth/token", s.token)
	mux.HandleFunc("GET /oauth/jwks", s.keySet)
	s.server = httptest.NewServer(mux)
	s.URL = s.server.URL
	return s
}

// Close ends the service and its connections.
func (s *Service) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// Calls returns the requests seen so far of one operation, or of all where operation is empty.
func (s *Service) Calls(operation string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []Call
	for _, call := range s.calls {
		if operation == "" || call.Operation == operation {
			calls = append(calls, call)
		}
	}
	return calls
}

// Bytes returns what was accepted of an upload.
func (s *Service) Bytes(uploadID string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.custody[uploadID]; u != nil {
		return append([]byte(nil), u.whole...)
	}
	return nil
}

// Uploads is how many uploads were ever reserved.
func (s *Service) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.custody)
}

// SetStatus forces the status of an upload, EXPIRED for example.
func (s *Service) SetStatus(uploadID, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.custody[uploadID].event(status)
}

// refusal is an error object on its way out.
type refusal struct {
	status        int
	code, message string
	details       map[string]any
}

type answer struct {
	status int
	data   any
	header map[string]string
}

type handler func(r *http.Request, body []byte) (*answer, *refusal)

// operation authorises, injects faults, replays by Idempotency-Key and writes the envelope.
func (s *Service) operation(name string, handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		number, _ := strconv.Atoi(r.PathValue("part"))
		s.calls = append(s.calls, Call{
			Operation: name, IdempotencyKey: r.Header.Get("Idempotency-Key"), PartNumber: number, Header: r.Header.Clone(),
		})
		s.order++
		request := fmt.Sprintf("req-%d", s.order)
		fault := s.takeFault(name)
		s.mu.Unlock()

		if fault != nil && fault.before(w, r, request) {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the connection broke: nothing was accepted
		}
		result, refused := s.run(name, handle, r, body)
		if fault != nil && fault.LoseAnswer {
			panic(http.ErrAbortHandler)
		}
		if refused != nil {
			writeError(w, request, refused)
			return
		}
		for key, value := range result.header {
			w.Header().Set(key, value)
		}
		if result.status == http.StatusNotModified {
			w.WriteHeader(result.status)
			return
		}
		write(w, result.status, map[string]any{"request_id": request, "trace_id": "trace-" + request, "data": result.data})
	}
}

func (s *Service) run(name string, handle handler, r *http.Request, body []byte) (*answer, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.authorise(name, r); refused != nil {
		return nil, refused
	}
	if r.Method == http.MethodGet {
		return settle(handle(r, body))
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) < 8 || len(key) > 128 {
		return nil, &refusal{400, "idempotency_key_required", "Idempotency-Key has to be 8 to 128 visible characters", nil}
	}
	sum := sha256.Sum256(append([]byte(r.URL.Path+"\n"), body...))
	request := hex.EncodeToString(sum[:])
	if before := s.served[name+" "+key]; before != nil {
		if before.request != request {
			return nil, &refusal{409, "idempotency_conflict", "the Idempotency-Key was used for another request", nil}
		}
		return &answer{status: before.status, data: before.data, header: map[string]string{"Idempotent-Replayed": "true"}}, nil
	}
	result, refused := settle(handle(r, body))
	if refused == nil {
		s.served[name+" "+key] = &served{request: request, status: result.status, data: result.data}
	}
	return result, refused
}

// settle encodes the data while the service is locked: later requests change what it points to.
func settle(result *answer, refused *refusal) (*answer, *refusal) {
	if refused == nil {
		encoded, err := json.Marshal(result.data)
		if err != nil {
			return nil, &refusal{500, "internal", err.Error(), nil}
		}
		result.data = json.RawMessage(encoded)
	}
	return result, refused
}

func (s *Service) authorise(name string, r *http.Request) *refusal {
	token := r.Header.Get("x-api-key")
	bearer, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	admin := bearer == AdminToken
	if isBearer && !admin {
		if token = s.granted[bearer]; token == "" {
			return &refusal{401, "credential_invalid", "the access token is not valid", nil}
		}
	}
	known := token == UploadToken || token == ReaderToken
	foreign := r.PathValue("org") != Org
	switch name {
	case "issue":
		if !admin {
			return &refusal{401, "authentication_required", "the admin token is required", nil}
		}
	case "initiate", "part", "complete":
		if token != UploadToken || foreign {
			return &refusal{401, "credential_not_bound", "a credential of this organization with the role solution_company_upload is required", nil}
		}
	case "withdraw":
		if admin {
			return nil
		}
		if token != UploadToken || foreign {
			return &refusal{403, "credential_not_bound", "the credential is not bound to this upload", nil}
		}
	case "context", "records":
		if !known {
			return &refusal{401, "authentication_required", "an AI reader API key is required", nil}
		}
		if token != ReaderToken || foreign {
			return &refusal{403, "insufficient_scope", "the scope ai_context is required", nil}
		}
	default:
		if !known {
			return &refusal{401, "authentication_required", "a credential is required", nil}
		}
		if foreign {
			return &refusal{404, "upload_not_found", "no such upload for this credential", nil}
		}
	}
	return nil
}

func writeError(w http.ResponseWriter, request string, refused *refusal) {
	object := map[string]any{
		"code": refused.code, "message": refused.message, "request_id": request, "trace_id": "trace-" + request,
	}
	if refused.details != nil {
		object["details"] = refused.details
	}
	write(w, refused.status, object)
}

func write(w http.ResponseWriter, status int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone; a test then sees its side of it.
	_ = json.NewEncoder(w).Encode(object)
}

func (s *Service) find(r *http.Request) (*upload, *refusal) {
	u := s.custody[r.PathValue("upload")]
	if u == nil || u.org != r.PathValue("org") {
		return nil, &refusal{404, "upload_not_found", "no such upload for this credential", nil}
	}
	return u, nil
}

func decode(body []byte, into any) *refusal {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return &refusal{400, "invalid_request", "the body does not fit: " + err.Error(), nil}
	}
	return nil
}
