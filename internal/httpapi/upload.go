package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/accession/accession/internal/custody"
)

// uploads are partner uploads: initiate, parts, complete; status.go has the reading side. (Section 4.6.)
type uploads struct {
	room    Intake
	baseURL string
}

const (
	uploadsPath = "/api/v1/organizations/{org_id}/partner-uploads"

	// pollAfterSeconds is the Retry-After of a new job: small documents are through the gates in seconds.
	pollAfterSeconds = 1
)

type initiateInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key" required:"true"`
	Body  reservation
}

// reservation is the initiate body of section 4.6. It may hold more properties, as submission may.
type reservation struct {
	Filename     filename  `json:"filename"`
	ContentType  mediaType `json:"content_type"`
	SizeBytes    int64     `json:"size_bytes" minimum:"1" maximum:"8589934592"`
	Consent      consent   `json:"consent"`
	Notes        notes     `json:"notes,omitempty"`
	MaterialType label     `json:"material_type,omitempty"`
	Importance   string    `json:"importance,omitempty" enum:"normal,important"`

	raw any // the whole body: claims may stand where the contract knows no property
}

// UnmarshalJSON keeps the body whole beside what the contract knows of it.
func (r *reservation) UnmarshalJSON(b []byte) error {
	type known reservation
	return unmarshalWhole(b, &r.raw, (*known)(r))
}

// consent is section 2.3.
type consent struct {
	Accepted          accepted  `json:"accepted"`
	AgreementVersion  label     `json:"beta_agreement_version"`
	AIReadableVersion label     `json:"ai_readable_use_consent_version"`
	TextHash          digest    `json:"text_hash_sha256"`
	UserID            label     `json:"consenting_user_id"`
	UserEmail         email     `json:"consenting_user_email"`
	AcceptedAt        givenTime `json:"accepted_at"`
}

type initiated struct {
	UploadID      string    `json:"upload_id"`
	PartSizeBytes int64     `json:"part_size_bytes" minimum:"1" doc:"Length of every part but the last, which may be shorter."`
	Status        string    `json:"status"`
	ExpiresAt     timestamp `json:"expires_at"`
}

type partInput struct {
	OrgID    orgID          `path:"org_id"`
	Key      idempotencyKey `header:"Idempotency-Key" required:"true"`
	Digest   string         `header:"Content-Digest" doc:"RFC 9530; its sha-256 member is checked."`
	UploadID uploadID       `query:"upload_id" required:"true"`
	Number   int            `query:"part_number" required:"true" minimum:"1"`
}

type partByPathInput struct {
	OrgID         orgID          `path:"org_id"`
	Key           idempotencyKey `header:"Idempotency-Key" required:"true"`
	Digest        string         `header:"Content-Digest" doc:"RFC 9530; its sha-256 member is checked."`
	UploadID      uploadID       `path:"upload_id"`
	Number        int            `path:"part_number" minimum:"1"`
	QueryUploadID uploadID       `query:"upload_id" hidden:"true"` // whoever sends both must mean the same
	QueryNumber   int            `query:"part_number" hidden:"true"`
}

type partAccepted struct {
	UploadID   string `json:"upload_id"`
	PartNumber int    `json:"part_number" minimum:"1"`
	Sequence   int64  `json:"sequence" minimum:"1"`
	Status     string `json:"status"`
}

type completeInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key" required:"true"`
	Body  completion
}

type completeByPathInput struct {
	OrgID    orgID          `path:"org_id"`
	UploadID uploadID       `path:"upload_id"`
	Key      idempotencyKey `header:"Idempotency-Key" required:"true"`
	Body     completionByPath
}

type completion struct {
	UploadID uploadID       `json:"upload_id"`
	Parts    []declaredPart `json:"parts" minItems:"1" nullable:"false"`
	SHA256   digest         `json:"client_file_sha256"`
	_        struct{}       `additionalProperties:"false"`
}

// completionByPath may leave upload_id to the path.
type completionByPath struct {
	UploadID uploadID       `json:"upload_id,omitempty"`
	Parts    []declaredPart `json:"parts" minItems:"1" nullable:"false"`
	SHA256   digest         `json:"client_file_sha256"`
	_        struct{}       `additionalProperties:"false"`
}

type declaredPart struct {
	Number    int      `json:"part_number" minimum:"1"`
	SHA256    digest   `json:"sha256,omitempty"`
	SizeBytes int64    `json:"size_bytes,omitempty" minimum:"1"`
	_         struct{} `additionalProperties:"false"`
}

type completed struct {
	UploadID   string `json:"upload_id"`
	PipelineID string `json:"pipeline_id"`
	Status     string `json:"status"`
	Sequence   int64  `json:"sequence" minimum:"1"`
	SHA256     string `json:"sha256" pattern:"^[a-f0-9]{64}$"`
	Job        *job   `json:"job,omitempty" doc:"With 202."`
}

// job is the asynchronous job of section 2.6: exactly these four fields.
type job struct {
	ID               string   `json:"job_id"`
	StatusURL        string   `json:"status_url" format:"uri"`
	PollAfterSeconds int      `json:"poll_after_seconds" minimum:"1"`
	Polling          polling  `json:"polling"`
	_                struct{} `additionalProperties:"false"`
}

type polling struct {
	Method           string           `json:"method" enum:"GET"`
	URL              string           `json:"url" format:"uri"`
	TerminalStatuses []custody.Status `json:"terminal_statuses" nullable:"false"`
	_                struct{}         `additionalProperties:"false"`
}

func (s uploads) mount(d *door) {
	op := operation{
		id: custody.OpInitiateUpload, method: http.MethodPost, path: uploadsPath + "/initiate", tag: "partner uploads", body: bodyJSON,
		summary: "Reserve an upload", doc: "Quota is reserved until expires_at.",
		failures: []int{403, 409}, answers: map[int]reflect.Type{200: says[initiated]()},
	}
	mount(d, op, s.initiate)

	op = operation{
		id: custody.OpPutPart, method: http.MethodPut, path: uploadsPath + "/part", tag: "partner uploads", body: bodyPart,
		summary: "Send the next part", doc: "In order, each of part_size_bytes but the last. The same part again is accepted again.",
		failures: []int{403, 404, 409, 507}, answers: map[int]reflect.Type{200: says[partAccepted]()},
	}
	mount(d, op, func(ctx context.Context, x *exchange, in *partInput) (answer, error) {
		return s.acceptPart(ctx, x, in.OrgID, in.UploadID, in.Number, in.Key)
	})
	op.name, op.path = "putPartnerUploadPartByPath", uploadsPath+"/{upload_id}/parts/{part_number}"
	mount(d, op, func(ctx context.Context, x *exchange, in *partByPathInput) (answer, error) {
		if (in.QueryUploadID != "" && in.QueryUploadID != in.UploadID) || (in.QueryNumber != 0 && in.QueryNumber != in.Number) {
			return answer{}, identityConflict()
		}
		return s.acceptPart(ctx, x, in.OrgID, in.UploadID, in.Number, in.Key)
	})

	op = operation{
		id: custody.OpCompleteUpload, method: http.MethodPost, path: uploadsPath + "/complete", tag: "partner uploads", body: bodyJSON,
		summary:  "Close the part ledger and start processing",
		doc:      "202 is the start of processing, not its end: poll the status URL.",
		failures: []int{403, 404, 409}, answers: map[int]reflect.Type{200: says[completed](), 202: says[completed]()},
	}
	mount(d, op, func(ctx context.Context, x *exchange, in *completeInput) (answer, error) {
		return s.complete(ctx, x, in.OrgID, in.Key, in.Body)
	})
	op.name, op.path = "completePartnerUploadByPath", uploadsPath+"/{upload_id}/complete"
	mount(d, op, func(ctx context.Context, x *exchange, in *completeByPathInput) (answer, error) {
		if in.Body.UploadID != "" && in.Body.UploadID != in.UploadID {
			return answer{}, identityConflict()
		}
		in.Body.UploadID = in.UploadID
		return s.complete(ctx, x, in.OrgID, in.Key, completion(in.Body))
	})

	s.mountReads(d)
}

func identityConflict() error {
	return custody.Errorf(custody.CodeUploadIdentityConflict, "the request names different uploads or parts in its path, query or body")
}

func (s uploads) initiate(ctx context.Context, x *exchange, in *initiateInput) (answer, error) {
	b := in.Body
	if b.Importance == "" {
		b.Importance = string(custody.ImportanceNormal)
	}
	a, err := s.room.Initiate(ctx, x.caller, custody.Reservation{
		OrgID: string(in.OrgID), Filename: string(b.Filename), ContentType: string(b.ContentType), SizeBytes: b.SizeBytes,
		Notes: string(b.Notes), MaterialType: string(b.MaterialType), Importance: custody.Importance(b.Importance),
		Consent: b.Consent.kept(), Body: b.raw,
	}, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpInitiateUpload, Key: string(in.Key),
		RequestHash: requestHash(custody.OpInitiateUpload, in.OrgID, b),
		Render: render(func(u custody.Upload) (int, any) {
			return http.StatusOK, initiated{u.ID, u.PartSizeBytes, string(u.Status), timestamp{u.ExpiresAt}}
		}),
	})
	return answer{Answer: a}, err
}

func (s uploads) acceptPart(ctx context.Context, x *exchange, org orgID, id uploadID, number int, key idempotencyKey) (answer, error) {
	a, err := s.room.AcceptPart(ctx, x.caller, custody.IncomingPart{
		OrgID: string(org), UploadID: string(id), Number: number, Length: x.body.left, Body: x.body, DeclaredSHA256: x.digest,
	}, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpPutPart, Key: string(key),
		Render: render(func(p custody.AcceptedPart) (int, any) {
			return http.StatusOK, partAccepted{p.UploadID, p.Number, p.Sequence, string(p.Status)}
		}),
	})
	if err != nil && x.body.failure != nil {
		err = x.body.failure // whatever the room made of it, the sender began it
	}
	return answer{Answer: a}, err
}

func (s uploads) complete(ctx context.Context, x *exchange, org orgID, key idempotencyKey, b completion) (answer, error) {
	c := custody.Completion{OrgID: string(org), UploadID: string(b.UploadID), ClientSHA256: string(b.SHA256)}
	for _, p := range b.Parts {
		c.Parts = append(c.Parts, custody.DeclaredPart{Number: p.Number, SHA256: string(p.SHA256), SizeBytes: p.SizeBytes})
	}
	a, err := s.room.Complete(ctx, x.caller, c, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpCompleteUpload, Key: string(key),
		RequestHash: requestHash(custody.OpCompleteUpload, org, b.UploadID, b),
		Render: render(func(done custody.Completed) (int, any) {
			u := done.Upload
			data := completed{u.ID, u.PipelineID, string(u.Status), u.Sequence, u.SHA256, nil}
			if !done.Accepted {
				return http.StatusOK, data
			}
			data.Job = s.job(u)
			return http.StatusAccepted, data
		}),
	})
	if err != nil || a.Status != http.StatusAccepted {
		return answer{Answer: a}, err
	}
	// From the stored answer, so that a replay has the same headers.
	stored := completed{Job: &job{}}
	if err := json.Unmarshal(a.Data, &stored); err != nil {
		return answer{}, fmt.Errorf("reading the job of a stored answer: %w", err)
	}
	return answer{Answer: a, header: map[string]string{
		"Location":    stored.Job.StatusURL,
		"Retry-After": retrySeconds(time.Duration(stored.Job.PollAfterSeconds) * time.Second),
	}}, nil
}

func (s uploads) job(u custody.Upload) *job {
	at := s.baseURL + "/api/v1/organizations/" + url.PathEscape(u.OrgID) + "/partner-uploads/" + url.PathEscape(u.ID)
	id := u.PipelineID
	if id == "" {
		id = u.ID
	}
	return &job{ID: id, StatusURL: at, PollAfterSeconds: pollAfterSeconds,
		Polling: polling{Method: http.MethodGet, URL: at, TerminalStatuses: custody.TerminalStatuses}}
}
