package clienttest

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// UploadCredentialID and ReaderCredentialID are the client ids that UploadToken and ReaderToken are the secrets of (OAuth 2.0).
const (
	UploadCredentialID = "cred_upload"
	ReaderCredentialID = "cred_reader"
)

// EndAccessTokens has the service refuse every access token that it gave out.
func (s *Service) EndAccessTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.granted)
}

// token answers as RFC 6749 says.
func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls = append(s.calls, Call{Operation: "token", Header: r.Header.Clone()})
	s.order++
	request := fmt.Sprintf("req-%d", s.order)
	fault := s.takeFault("token")
	s.mu.Unlock()
	if fault != nil && fault.before(w, r, request) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	secret := r.PostFormValue("client_secret")
	id := map[string]string{UploadToken: UploadCredentialID, ReaderToken: ReaderCredentialID}[secret]
	if id == "" || id != r.PostFormValue("client_id") || r.PostFormValue("grant_type") != "client_credentials" {
		write(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": "the client is not known"})
		return
	}
	token := fmt.Sprintf("access-%d", s.order)
	s.granted[token] = secret
	write(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": r.PostFormValue("scope")})
}

// record notes a serving.
func (s *Service) record(u *upload) {
	n := len(s.records) + 1
	s.records = append(s.records, map[string]any{
		"record_id": fmt.Sprintf("rec_%d", n), "request_id": fmt.Sprintf("req-%d", s.order), "trace_id": fmt.Sprintf("trace-req-%d", s.order),
		"org_id": u.org, "upload_id": u.id, "credential_id": ReaderCredentialID, "surface": "rest", "outcome": "served",
		"context_sha256": strings.Repeat("ab", 32), "bytes": 512, "served_at": time.Now().UTC(),
		"previous_hash": fmt.Sprintf("%064x", n-1), "record_hash": fmt.Sprintf("%064x", n),
	})
}

// requestRecords pages from the newest on; a cursor is how many were read.
func (s *Service) requestRecords(r *http.Request, _ []byte) (*answer, *refusal) {
	query := r.URL.Query()
	read, _ := strconv.Atoi(query.Get("cursor"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	if limit == 0 {
		limit = 20
	}
	matching := []map[string]any{}
	for _, record := range slices.Backward(s.records) {
		if id := query.Get("upload_id"); id == "" || record["upload_id"] == id {
			matching = append(matching, record)
		}
	}
	matching = matching[min(max(read, 0), len(matching)):]
	next := ""
	if limit < len(matching) {
		matching, next = matching[:limit], strconv.Itoa(read+limit)
	}
	return &answer{status: 200, data: map[string]any{
		"records": matching, "next_cursor": next, "schema_disclaimer": "Evidence that something was served, not that it is true.",
	}}, nil
}

func (s *Service) receipt(r *http.Request, _ []byte) (*answer, *refusal) {
	u := s.custody[strings.TrimPrefix(r.PathValue("receipt"), "wr_")]
	if u == nil || u.org != r.PathValue("org") || u.status != "WITHDRAWN" {
		return nil, &refusal{404, "receipt_not_found", "no such receipt of this organization", nil}
	}
	receipt := map[string]any{
		"withdrawal_receipt_id": "wr_" + u.id, "issuer": s.URL, "upload_id": u.id, "org_id": u.org, "size_bytes": u.size,
		"requested_by": UploadCredentialID, "reason": "", "requested_at": u.withdrawn, "withdrawn_at": u.withdrawn, "quota_bytes": u.size,
		"deletions": []any{map[string]any{
			"backend": "staging", "objects": len(u.parts), "bytes": u.size, "confirmation": "listed_empty", "confirmed_at": u.withdrawn,
		}},
		"key_destroyed_at": u.withdrawn, "key_backup_horizon": "PT0S", "recalled": []any{}, "remains": []any{},
	}
	signed, err := s.sign(receipt)
	if err != nil {
		return nil, &refusal{500, "internal", err.Error(), nil}
	}
	receipt["signed_receipt"] = signed
	return &answer{status: 200, data: receipt}, nil
}

// sign makes a compact JWS (RFC 7515).
func (s *Service) sign(receipt map[string]any) (string, error) {
	payload, err := json.Marshal(receipt)
	if err != nil {
		return "", err
	}
	header := `{"alg":"EdDSA","kid":"receipts-1","typ":"accession-receipt+json"}`
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(s.key, []byte(text))), nil
}

func (s *Service) keySet(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
		"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "receipts-1",
		"x": base64.RawURLEncoding.EncodeToString(s.key.Public().(ed25519.PublicKey)),
	}}})
}
