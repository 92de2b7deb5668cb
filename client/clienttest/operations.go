package clienttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (s *Service) issue(_ *http.Request, body []byte) (*answer, *refusal) {
	var request struct {
		OrgID     string `json:"org_id"`
		Role      string `json:"role"`
		Scope     string `json:"scope"`
		ExpiresAt string `json:"expires_at"`
	}
	if refused := decode(body, &request); refused != nil {
		return nil, refused
	}
	token, scope := ReaderToken, "ai_context metadata_read ai_readiness mcp"
	switch request.Role {
	case "ai_reader":
	case "solution_company_upload":
		token, scope = UploadToken, "customer_upload metadata_read ai_readiness correction external_reference"
	default:
		return nil, &refusal{400, "invalid_request", "the request has invalid fields", map[string]any{
			"fields": []any{map[string]any{"path": "/role", "reason": "has to be solution_company_upload or ai_reader"}},
		}}
	}
	if request.Scope != "" {
		scope = request.Scope
	}
	expires := request.ExpiresAt
	if expires == "" {
		expires = "2027-05-19T12:00:00Z"
	}
	return &answer{status: 201, data: map[string]any{
		"credential_id": "cred_1", "org_id": request.OrgID, "role": request.Role,
		"scope": scope, "expires_at": expires, "token": token,
	}}, nil
}

func (s *Service) initiate(r *http.Request, body []byte) (*answer, *refusal) {
	var request struct {
		Filename     string         `json:"filename"`
		ContentType  string         `json:"content_type"`
		SizeBytes    int64          `json:"size_bytes"`
		Consent      map[string]any `json:"consent"`
		Notes        string         `json:"notes"`
		MaterialType string         `json:"material_type"`
		Importance   string         `json:"importance"`
	}
	if refused := decode(body, &request); refused != nil {
		return nil, refused
	}
	for _, field := range []string{
		"accepted", "beta_agreement_version", "ai_readable_use_consent_version", "text_hash_sha256",
		"consenting_user_id", "consenting_user_email", "accepted_at",
	} {
		if value := request.Consent[field]; value == nil || value == "" || value == false {
			return nil, &refusal{400, "consent_required", "the consent is not complete", map[string]any{
				"fields": []any{map[string]any{"path": "/consent/" + field, "reason": "is required"}},
			}}
		}
	}
	figures := s.figures()
	if request.SizeBytes > figures["available_bytes"].(int64) {
		return nil, &refusal{409, "quota_exceeded", "the organization has no room for this upload", figures}
	}
	u := &upload{
		id: fmt.Sprintf("up_%d", len(s.custody)+1), org: r.PathValue("org"), filename: request.Filename,
		contentType: request.ContentType, size: request.SizeBytes, created: time.Now().UTC(),
	}
	u.event("INITIATED")
	for _, name := range Gates {
		u.gates = append(u.gates, map[string]any{"name": name, "state": "pending"})
	}
	s.custody[u.id] = u
	return &answer{status: 200, data: map[string]any{
		"upload_id": u.id, "part_size_bytes": s.PartSizeBytes, "status": u.status,
		"expires_at": u.created.Add(24 * time.Hour),
	}}, nil
}

func (s *Service) part(r *http.Request, body []byte) (*answer, *refusal) {
	u, refused := s.find(r)
	if refused != nil {
		return nil, refused
	}
	number, _ := strconv.Atoi(r.PathValue("part"))
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	switch {
	case u.status != "INITIATED" && u.status != "RECEIVING":
		return nil, &refusal{409, "upload_not_receiving", "the upload is " + u.status + " and takes no parts", nil}
	case number > len(u.parts)+1 || number < 1:
		return nil, &refusal{409, "part_out_of_order", fmt.Sprintf("part %d is expected", len(u.parts)+1), nil}
	case number <= len(u.parts) && u.parts[number-1] != digest:
		return nil, &refusal{409, "part_conflict", "other bytes were accepted as this part", nil}
	case number == len(u.parts)+1:
		if want := min(s.PartSizeBytes, u.size-u.received); int64(len(body)) != want {
			return nil, &refusal{400, "part_length", fmt.Sprintf("the part has to be %d bytes long", want), nil}
		}
		u.parts = append(u.parts, digest)
		u.partSizes = append(u.partSizes, int64(len(body)))
		u.whole = append(u.whole, body...)
		u.received += int64(len(body))
		u.event("RECEIVING")
	}
	return &answer{status: 200, data: map[string]any{
		"upload_id": u.id, "part_number": number, "sequence": u.sequence, "status": u.status,
	}}, nil
}

func (s *Service) complete(r *http.Request, body []byte) (*answer, *refusal) {
	u, refused := s.find(r)
	if refused != nil {
		return nil, refused
	}
	var request struct {
		UploadID string `json:"upload_id"`
		Parts    []struct {
			PartNumber int    `json:"part_number"`
			SHA256     string `json:"sha256"`
			SizeBytes  int64  `json:"size_bytes"`
		} `json:"parts"`
		ClientFileSHA256 string `json:"client_file_sha256"`
	}
	if refused := decode(body, &request); refused != nil {
		return nil, refused
	}
	if request.UploadID != u.id || len(request.Parts) != len(u.parts) || u.received != u.size {
		return nil, &refusal{409, "part_ledger_mismatch", "the declared parts are not the accepted ones", nil}
	}
	for i, part := range request.Parts {
		if part.PartNumber != i+1 || part.SHA256 != "" && part.SHA256 != u.parts[i] ||
			part.SizeBytes != 0 && part.SizeBytes != u.partSizes[i] {
			return nil, &refusal{409, "part_ledger_mismatch", fmt.Sprintf("part %d is not the accepted one", i+1), nil}
		}
	}
	sum := sha256.Sum256(u.whole)
	digest := hex.EncodeToString(sum[:])
	if digest != request.ClientFileSHA256 {
		return nil, &refusal{409, "digest_mismatch", "the SHA-256 of the file is not the declared one", nil}
	}
	u.event("PROCESSING")
	address := s.URL + "/api/v1/organizations/" + u.org + "/partner-uploads/" + u.id
	return &answer{
		status: 202, header: map[string]string{"Location": address, "Retry-After": "1"},
		data: map[string]any{
			"upload_id": u.id, "pipeline_id": "pl_" + u.id, "status": u.status, "sequence": u.sequence, "sha256": digest,
			"job": map[string]any{
				"job_id": "pl_" + u.id, "status_url": address, "poll_after_seconds": 1,
				"polling": map[string]any{
					"method": "GET", "url": address,
					"terminal_statuses": []string{"READY", "REJECTED", "FAILED", "EXPIRED", "WITHDRAWN"},
				},
			},
		},
	}, nil
}

// status holds nothing: a client that knows the current version and would wait is given the next event at once.
func (s *Service) status(r *http.Request, _ []byte) (*answer, *refusal) {
	u, refused := s.find(r)
	if refused != nil {
		return nil, refused
	}
	if r.Header.Get("If-None-Match") == u.etag() {
		if !strings.HasPrefix(r.Header.Get("Prefer"), "wait=") || u.status != "PROCESSING" {
			return &answer{status: http.StatusNotModified, header: map[string]string{"ETag": u.etag()}}, nil
		}
		s.advance(u)
	}
	data := map[string]any{
		"upload_id": u.id, "status": u.status, "sequence": u.sequence, "gates": u.gates, "filename": u.filename,
		"size_bytes": u.size, "received_bytes": u.received, "next_part_number": len(u.parts) + 1,
		"created_at": u.created, "updated_at": time.Now().UTC(), "expires_at": u.created.Add(24 * time.Hour),
	}
	if u.failure != nil {
		data["failure"] = u.failure
	}
	return &answer{status: 200, data: data, header: map[string]string{"ETag": u.etag()}}, nil
}

// advance makes the next event: a gate starts, or ends.
func (s *Service) advance(u *upload) {
	gate := u.gates[u.step/2]
	now := time.Now().UTC()
	name := gate["name"].(string)
	if u.step%2 == 0 {
		gate["state"], gate["started_at"] = "running", now
	} else {
		gate["state"], gate["finished_at"] = "passed", now
		gate["detail"] = map[string]any{"checked_bytes": u.size}
	}
	next := "PROCESSING"
	if ended := u.step%2 == 1; ended {
		switch name {
		case s.Reject:
			gate["state"], next = "rejected", "REJECTED"
			u.failure = map[string]any{"gate": name, "code": "malware_found", "message": "the scan engine found malware"}
		case s.Fail:
			gate["state"], next = "failed", "FAILED"
			u.failure = map[string]any{"gate": name, "code": "scanner_unavailable", "message": "the scan engine gave no answer before the deadline"}
		case Gates[len(Gates)-1]:
			next = "READY"
		}
	}
	u.step++
	u.event(next)
}

func (s *Service) withdraw(r *http.Request, _ []byte) (*answer, *refusal) {
	u, refused := s.find(r)
	if refused != nil {
		return nil, refused
	}
	u.event("WITHDRAWN")
	u.whole, u.received = nil, 0
	u.withdrawn = time.Now().UTC()
	return &answer{status: 200, data: map[string]any{
		"upload_id": u.id, "status": u.status, "deleted": true, "withdrawal_receipt_id": "wr_" + u.id,
		"quota_bytes": s.figures()["used_bytes"],
	}}, nil
}

func (s *Service) aiContext(r *http.Request, _ []byte) (*answer, *refusal) {
	u, refused := s.find(r)
	if refused == nil && u.status != "READY" {
		refused = &refusal{404, "upload_not_found", "no context is published for this upload", nil}
	}
	if refused != nil {
		return nil, refused
	}
	s.record(u)
	return &answer{status: 200, data: map[string]any{
		"upload_id": u.id, "org_id": u.org, "visibility": "ai_readable_controlled",
		"context": map[string]any{
			"boundary_label": "customer-submitted, unverified", "evaluation_status": "not_evaluated",
			"content_trust": "untrusted", "summary": "The pump station was inspected.\x1b[31m Nothing leaked.",
			"excerpts":  []any{map[string]any{"text": "Pump 2 was overhauled.", "page": 1, "start": 0, "end": 22}},
			"truncated": true, "token_count": 14, "token_limit": 4096, "language": "en", "media_type": u.contentType,
			"source":      map[string]any{"filename": u.filename, "size_bytes": u.size},
			"signals":     map[string]any{"hidden_text": 1},
			"corrections": []string{}, "context_sha256": strings.Repeat("ab", 32), "x_extra": "kept",
		},
	}}, nil
}

func (s *Service) quota(r *http.Request, _ []byte) (*answer, *refusal) {
	figures := s.figures()
	figures["org_id"] = r.PathValue("org")
	return &answer{status: 200, data: figures}, nil
}

func (s *Service) figures() map[string]any {
	var used, reserved, count int64
	for _, u := range s.custody {
		switch u.status {
		case "INITIATED", "RECEIVING":
			reserved += u.size
			count++
		case "PROCESSING", "READY", "REJECTED", "FAILED":
			used += u.size
			count++
		}
	}
	return map[string]any{
		"allowance_bytes": s.AllowanceBytes, "used_bytes": used, "reserved_bytes": reserved,
		"available_bytes": s.AllowanceBytes - used - reserved, "upload_count": count,
	}
}

func (u *upload) event(status string) { u.status, u.sequence = status, u.sequence+1 }

func (u *upload) etag() string { return `"` + strconv.FormatInt(u.sequence, 10) + `"` }
