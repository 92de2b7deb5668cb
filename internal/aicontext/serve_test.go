package aicontext

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// shelf is one READY upload with a published context. It injects the faults of a store, and keeps the order of what it is asked.
type shelf struct {
	upload                              custody.Upload
	context                             Context
	corrections                         []string
	references                          []custody.Reference
	asked                               []string
	kept                                []custody.Record
	during                              func() // inside the record's transaction
	readErr, appendErr, commitErr, open error
}

func (s *shelf) Published(_ context.Context, org, id string) (custody.Published, error) {
	if org != s.upload.OrgID || id != s.upload.ID {
		return custody.Published{}, custody.ErrNotFound
	}
	return custody.Published{Status: s.upload.Status, Visibility: s.upload.Visibility, Context: custody.Artifact{ObjectKey: "k1"}}, s.readErr
}

func (s *shelf) Corrections(_ context.Context, _, _ string, limit int) ([]string, error) {
	return s.corrections[:min(limit, len(s.corrections))], nil
}

func (s *shelf) References(_ context.Context, _ string, limit int) ([]custody.Reference, error) {
	return slices.Clone(s.references[:min(limit, len(s.references))]), nil
}

func (s *shelf) Records(context.Context, custody.RecordQuery) ([]custody.Record, int64, error) {
	return s.kept, 0, nil
}

func (s *shelf) Record(_ context.Context, id string) (custody.Record, error) {
	for _, r := range s.kept {
		if r.ID == id {
			return r, s.readErr
		}
	}
	return custody.Record{}, custody.ErrNotFound
}

func (s *shelf) InTx(_ context.Context, fn func(Tx) error) error {
	if s.during != nil {
		s.during()
	}
	if err := fn(s); err != nil {
		return err
	}
	if s.commitErr != nil {
		s.kept = nil
		return s.commitErr
	}
	s.asked = append(s.asked, "durable")
	return nil
}

func (s *shelf) StatusForChange(ctx context.Context, org, id string) (custody.Status, error) {
	s.asked = append(s.asked, "status for change")
	p, err := s.Published(ctx, org, id)
	return p.Status, err
}

func (s *shelf) AppendRecord(_ context.Context, r *custody.Record) error {
	s.asked = append(s.asked, "record")
	if s.appendErr == nil {
		s.kept = append(s.kept, *r)
	}
	return s.appendErr
}

func (s *shelf) OpenArtifact(context.Context, custody.Artifact) ([]byte, error) {
	s.asked = append(s.asked, "open")
	if s.open != nil {
		return nil, s.open
	}
	return json.Marshal(s.context)
}

func newShelf(t *testing.T, v custody.Visibility) *shelf {
	t.Helper()
	u := custody.Upload{ID: "upl_1", OrgID: "org_1", Kind: custody.KindCustomer, Status: custody.StatusReady, Visibility: v, Filename: "note.txt",
		Consent: custody.Consent{AgreementVersion: "b1", ConsentingUserID: "user-4711", ConsentingEmail: "ann@example.org"}}
	pages := []Page{{Number: 1, Text: strings.Repeat("The pump of station two was overhauled in October by the harbour office. The generator needs a new filter before winter comes. ", 5)}}
	summary, err := Summarize(pages, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compose(u, "text/plain", pages, false, summary, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{upload: u, context: c}
}

var reader = custody.Caller{CredentialID: "cred_r", OrgID: "org_1", Role: custody.RoleAIReader, Scopes: custody.RoleScopes[custody.RoleAIReader], RequestID: "req_1", TraceID: "trc_1"}

func (s *shelf) serve(t *testing.T) (custody.Serving, error) {
	t.Helper()
	return NewService(s, s).Serve(t.Context(), reader, "org_1", "upl_1", "rest")
}

func wantCode(t *testing.T, err error, code custody.Code) {
	t.Helper()
	var e *custody.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestServingIsRecordedFirst(t *testing.T) {
	s := newShelf(t, custody.VisibilityAIReadable)
	s.corrections = []string{"upl_2", "upl_3"}
	s.references = []custody.Reference{{ReviewID: "r\u202e1", Reviewer: "A\u200bnn", SourceURL: "https://a.example", AttachedAt: time.Unix(1, 0).UTC()}}
	v, err := s.serve(t)
	if err != nil {
		t.Fatal(err)
	}
	var c Context
	if err := json.Unmarshal(v.Context, &c); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.asked, []string{"open", "status for change", "record", "durable"}) {
		t.Errorf("order %v", s.asked)
	}
	r := s.kept[0]
	if len(s.kept) != 1 || r.ID != v.RecordID || r.Outcome != custody.OutcomeServed || r.Surface != "rest" || r.Bytes != int64(len(v.Context)) ||
		r.ContextSHA256 != s.context.ContextSHA256 || r.RequestID != "req_1" || r.TraceID != "trc_1" || r.CredentialID != "cred_r" || r.UploadID != "upl_1" || r.OrgID != "org_1" || r.ServedAt.IsZero() {
		t.Errorf("record %+v", r)
	}
	if !slices.Equal(c.Corrections, s.corrections) || len(c.ExternalReferences) != 1 || c.ExternalReferences[0].ReviewID != "r1" || c.ExternalReferences[0].Reviewer != "Ann" {
		t.Errorf("corrections %v, references %+v", c.Corrections, c.ExternalReferences)
	}
	if c.ContextSHA256 != s.context.ContextSHA256 || c.Canary != "accession-canary-"+v.RecordID || c.Summary != s.context.Summary {
		t.Errorf("context %+v", c)
	}
	if said := string(v.Context); strings.Contains(said, "4711") || strings.Contains(said, "ann@") {
		t.Errorf("the context tells who consented: %s", said)
	}
}

// No durable record, no serving: whichever step of the record fails.
func TestNothingIsServedWithoutADurableRecord(t *testing.T) {
	fault := errors.New("disk on fire")
	for _, visibility := range []custody.Visibility{custody.VisibilityAIReadable, custody.VisibilityInternal} {
		for name, c := range map[string]struct {
			fault func(*shelf)
			code  custody.Code
		}{
			"the record is refused":    {func(s *shelf) { s.appendErr = fault }, custody.CodeUnavailable},
			"the commit fails":         {func(s *shelf) { s.commitErr = fault }, custody.CodeUnavailable},
			"the upload is unreadable": {func(s *shelf) { s.during = func() { s.readErr = fault } }, custody.CodeUnavailable},
			"withdrawn meanwhile":      {func(s *shelf) { s.during = func() { s.upload.Status = custody.StatusWithdrawing } }, custody.CodeContextNotReady},
		} {
			t.Run(string(visibility)+" "+name, func(t *testing.T) {
				s := newShelf(t, visibility)
				c.fault(s)
				v, err := s.serve(t)
				wantCode(t, err, c.code)
				if len(v.Context) != 0 || v.RecordID != "" || len(s.kept) != 0 {
					t.Errorf("served %+v, records %+v", v, s.kept)
				}
			})
		}
	}
}

func TestVisibility(t *testing.T) {
	for visibility, excerpts := range map[custody.Visibility]bool{
		custody.VisibilityAIReadable: true, custody.VisibilityPublicProfile: true, custody.VisibilityPrivateSummary: false,
	} {
		s := newShelf(t, visibility)
		v, err := s.serve(t)
		var c Context
		if err := errors.Join(err, json.Unmarshal(v.Context, &c)); err != nil {
			t.Fatal(err)
		}
		if c.Summary == "" || len(c.Excerpts) > 0 != excerpts || c.Truncated && excerpts || c.TokenCount < 5 || v.Visibility != visibility || c.Source.Visibility != visibility {
			t.Errorf("%s: %+v", visibility, c)
		}
	}
	s := newShelf(t, custody.VisibilityInternal)
	v, err := s.serve(t)
	wantCode(t, err, custody.CodeVisibilityDenied)
	if len(v.Context) != 0 || slices.Contains(s.asked, "open") {
		t.Errorf("served %s, asked %v", v.Context, s.asked)
	}
	if len(s.kept) != 1 || s.kept[0].Outcome != custody.OutcomeRefusedVisibility || s.kept[0].ContextSHA256 != "" || s.kept[0].Bytes != 0 {
		t.Errorf("records %+v", s.kept)
	}
}

func TestWhatIsNotReadyIsNotServed(t *testing.T) {
	for _, status := range []custody.Status{custody.StatusInitiated, custody.StatusReceiving, custody.StatusProcessing, custody.StatusRejected,
		custody.StatusFailed, custody.StatusExpired, custody.StatusWithdrawing, custody.StatusWithdrawn} {
		for _, v := range []custody.Visibility{custody.VisibilityAIReadable, custody.VisibilityInternal} {
			s := newShelf(t, v)
			s.upload.Status = status
			_, err := s.serve(t)
			wantCode(t, err, custody.CodeContextNotReady)
			if len(s.asked) != 0 {
				t.Errorf("%s: asked %v", status, s.asked)
			}
		}
	}
	s := newShelf(t, custody.VisibilityAIReadable)
	_, err := NewService(s, s).Serve(t.Context(), reader, "org_1", "upl_2", "rest")
	wantCode(t, err, custody.CodeUploadNotFound)
	s.open = errors.New("disk on fire")
	_, err = s.serve(t)
	wantCode(t, err, custody.CodeUnavailable)
	stranger := reader
	stranger.OrgID = "org_2"
	_, err = NewService(s, s).Serve(t.Context(), stranger, "org_1", "upl_1", "rest")
	wantCode(t, err, custody.CodeAccessDenied)
	if len(s.kept) != 0 {
		t.Errorf("records %+v", s.kept)
	}
}
