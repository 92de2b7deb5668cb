package e2e

import (
	"bytes"
	"os"
	"testing"
)

// Where ACCESSION_PLANTED is set, the service under test is built with known bugs, and the one of that name is at work; none
// where it is empty. scripts/negative-controls.sh sets it, and wants tests to fail.
const plantedVariable = "ACCESSION_PLANTED"

func plantedTags() []string {
	if _, ok := os.LookupEnv(plantedVariable); ok {
		return []string{"planted"}
	}
	return nil
}

func plantedSettings() []string {
	if bug, ok := os.LookupEnv(plantedVariable); ok {
		return []string{plantedVariable + "=" + bug}
	}
	return nil
}

// A release holds none of the bugs: whoever asks it for one gets the service as it is. (Their names alone are in it, in the manual.)
func TestReleaseHasNoPlantedBugs(t *testing.T) {
	t.Parallel()
	program := readFile(t, binary)
	for _, text := range []string{"planted bug at work", "must name one of the planted bugs"} {
		if bytes.Contains(program, []byte(text)) {
			t.Errorf("the released binary holds %q", text)
		}
	}
	s := start(t, options{env: []string{plantedVariable + "=key-of-another-request"}})
	p, key := s.partner("harbour"), "one-key-for-two-bodies"
	s.do(p.reserving(key, 10)).want(t, 200, "")
	s.do(p.reserving(key, 11)).want(t, 409, "idempotency_conflict")
}
