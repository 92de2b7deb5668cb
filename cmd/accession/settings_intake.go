package main

import (
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

// intakeSettings bound uploads: their size, their time.
type intakeSettings struct {
	QuotaBytes    int64         `setting:"quota-bytes" default:"107374182400" usage:"storage allowance of a new organization in bytes"`
	PartSizeBytes int64         `setting:"part-size-bytes" default:"16777216" usage:"length of every part but the last in bytes, a multiple of 64"`
	Reservation   time.Duration `setting:"reservation-lifetime" default:"24h" usage:"how long an upload may take from initiate to complete"`
	GateDeadlines string        `setting:"gate-deadlines" form:"pairs" usage:"shorter or longer gate deadlines, such as malware_scan=30m,extraction=2h"`
}

func (s *intakeSettings) check() error {
	if s.QuotaBytes < 0 {
		return wrong("quota-bytes", "must not be negative")
	}
	if s.PartSizeBytes <= 0 || s.PartSizeBytes%64 != 0 {
		return wrong("part-size-bytes", "must be a positive multiple of 64")
	}
	if s.Reservation <= 0 {
		return wrong("reservation-lifetime", "must be a duration, such as 24h")
	}
	_, err := s.gates()
	return err
}

// gates is the gate table with the deadlines of this installation.
func (s *intakeSettings) gates() ([]custody.Gate, error) {
	gates := append([]custody.Gate(nil), custody.Gates...)
	for setting := range strings.SplitSeq(s.GateDeadlines, ",") {
		if setting == "" {
			continue
		}
		name, text, _ := strings.Cut(setting, "=")
		deadline, err := time.ParseDuration(text)
		known := false
		for i := range gates {
			if string(gates[i].Name) == name {
				gates[i].Deadline, gates[i].Attempt, known = deadline, min(gates[i].Attempt, deadline), true
			}
		}
		if err != nil || deadline <= 0 || !known {
			return nil, wrong("gate-deadlines", "has %q, which must be a gate and a duration, such as malware_scan=30m", setting)
		}
	}
	return gates, nil
}
