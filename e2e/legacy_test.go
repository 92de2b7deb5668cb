package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// The formats of before 2007 are read where LibreOffice is installed, and refused elsewhere; both are tested where the machine is such.
func TestLegacyDocuments(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("soffice")
	installed := err == nil
	t.Logf("LibreOffice is installed: %t", installed)
	without := t.TempDir() // a search path with nothing on it
	for name, path := range map[string]string{"as this machine is": "", "without LibreOffice": without} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{}
			if path != "" {
				o.env = []string{"PATH=" + path}
			}
			s := start(t, o)
			p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
			for ending, mediaType := range map[string]string{"doc": "application/msword", "xls": "application/vnd.ms-excel", "ppt": "application/vnd.ms-powerpoint"} {
				t.Run(ending, func(t *testing.T) {
					p := p.in(t)
					id := p.send("harbour-note."+ending, mediaType, harbourNote(t, ending))
					if !installed || path != "" {
						p.wantEnd(id, "REJECTED", "extraction", "media_type_unsupported")
						return
					}
					st := p.wantReady(id)
					served := decode[servedContext](t, s.in(t).context("harbour", reader, id).want(t, 200, ""))
					if text := served.text(); !strings.Contains(text, "amber-lighthouse-44") || served.Context.MediaType != mediaType || st.Gates[3].Detail["media_type"] != mediaType {
						t.Errorf("%q, media type %q, detail %v", text, served.Context.MediaType, st.Gates[3].Detail)
					}
				})
			}
			s.wantUnseen("amber-lighthouse-44")
		})
	}
	said := func(env ...string) string {
		_, said := doctor(t, append(env, "ACCESSION_CLAMD_ADDRESS="+clamd))
		return said
	}
	if here := said(); !strings.Contains(here, "✓ LibreOffice") || strings.Contains(here, "reads DOC, XLS and PPT") != installed {
		t.Errorf("installed %t, doctor:\n%s", installed, here)
	}
	if there := said("PATH=" + without); !strings.Contains(there, "✓ LibreOffice") || !strings.Contains(there, "not found (optional: DOC, XLS and PPT are refused)") {
		t.Errorf("not installed, doctor:\n%s", there)
	}
}
