package main

import (
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/accession/accession/internal/extract"
)

// scannerSettings are about clamd and its signatures.
type scannerSettings struct {
	ClamdAddress     string        `setting:"clamd-address" usage:"unix:/path or tcp:HOST:PORT of a clamd; default: one managed by the service"`
	ClamAVDatabase   string        `setting:"clamav-database" usage:"signature folder of the managed clamd; default: the system's"`
	SignaturesMaxAge time.Duration `setting:"signatures-max-age" default:"0" usage:"older malware signatures hold the malware gate, such as 168h; 0: of any age"`
	SignaturesCheck  time.Duration `setting:"signatures-check-every" default:"1m" usage:"how often to look for other malware signatures, which re-scan what is stored; at least 1s"`
}

func (s *scannerSettings) check() error {
	if s.SignaturesMaxAge < 0 {
		return wrong("signatures-max-age", "must be a duration, such as 168h, or 0 for any age")
	}
	if s.SignaturesCheck < time.Second {
		return wrong("signatures-check-every", "must be a duration of at least 1s, such as 1m")
	}
	return nil
}

// extractionSettings are about the workers that read documents.
type extractionSettings struct {
	OCRLanguages string `setting:"ocr-languages" default:"eng" form:"list" usage:"languages of scans, most likely first, such as eng,deu; each is a package tesseract-ocr-LANGUAGE"`
	MissingWalls string `setting:"missing-walls" default:"refuse" usage:"refuse, or allow: read documents even where the kernel lacks a wall of the cage"`
}

func (s *extractionSettings) check() error {
	for _, language := range s.languages() {
		if !ocrLanguage.MatchString(language) {
			return wrong("ocr-languages", "has %q, which must be the name of a language of tesseract, such as eng", language)
		}
	}
	if s.MissingWalls != "refuse" && s.MissingWalls != "allow" {
		return wrong("missing-walls", "must be refuse or allow")
	}
	return nil
}

// ocrLanguage is a name as tesseract's data files have: eng, chi_sim, script/Latin.
var ocrLanguage = regexp.MustCompile(`^[A-Za-z][A-Za-z_]*(/[A-Za-z_]+)?$`)

func (s *extractionSettings) languages() (languages []string) {
	for language := range strings.FieldsFuncSeq(s.OCRLanguages, func(r rune) bool { return strings.ContainsRune(", +", r) }) {
		languages = append(languages, language)
	}
	return languages
}

// extraction is the configuration of the extractor, for the service and for the doctor.
func (s *settings) extraction(log *slog.Logger) extract.Config {
	return extract.Config{CacheDir: s.Cache, Languages: s.languages(), AllowMissingWalls: s.MissingWalls == "allow", Log: log}
}
