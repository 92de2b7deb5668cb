package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A solution company's files: in several parts, paused, gone on with after a reload, refused, withdrawn. The flow compares what
// the pages say with what the API says; the downloaded receipt is verified here, without the service.
func TestBrowserCompany(t *testing.T) {
	t.Parallel()
	const partSize = 64 << 10
	s := start(t, options{flags: []string{"--part-size-bytes", fmt.Sprint(partSize), "--rate-limits", "off"}})
	downloads := t.TempDir()
	said := strings.TrimSpace(s.visit(t, "company", fmt.Sprintf("PART_SIZE=%d", partSize), "DOWNLOADS="+downloads))
	receipt, keys := filepath.Join(downloads, "receipt.jws"), filepath.Join(downloads, "keys.json")
	if out, errs, exit := s.cli("", "receipt", "verify", receipt, "--keys", keys); exit != 0 {
		t.Errorf("the downloaded receipt does not verify: %s%s", out, errs)
	}

	// What went in over a reload is the file, byte for byte.
	var got struct {
		SHA256   string `json:"sha256"`
		UploadID string `json:"upload_id"`
	}
	if err := json.Unmarshal([]byte(said[strings.LastIndex(said, "\n")+1:]), &got); err != nil {
		t.Fatalf("the flow's last line: %v\n%s", err, said)
	}
	served := s.do(call{method: "GET", path: "/api/v1/organizations/harbour/ai-context/" + got.UploadID, token: s.issue("harbour", "ai_reader")}).want(t, 200, "").data(t)
	context, _ := served["context"].(map[string]any)
	if source, _ := context["source"].(map[string]any); source["sha256"] != got.SHA256 {
		t.Errorf("the context is of %v, the file's SHA-256 is %s", source["sha256"], got.SHA256)
	}
}
