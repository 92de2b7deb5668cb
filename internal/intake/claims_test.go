package intake

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// corpusHalf is one half of testdata/claims: what is to be found, and what is not.
type corpusHalf struct{ claims, innocent []string }

func readHalf(tb testing.TB, name string) corpusHalf {
	tb.Helper()
	return corpusHalf{sentences(tb, name+"_claims.txt"), sentences(tb, name+"_innocent.txt")}
}

func sentences(tb testing.TB, file string) []string {
	tb.Helper()
	raw, err := os.ReadFile("testdata/claims/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for lines := bufio.NewScanner(strings.NewReader(string(raw))); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.Contains(line, `\`) {
			if line, err = strconv.Unquote(`"` + line + `"`); err != nil {
				tb.Fatalf("%s: %q: %v", file, lines.Text(), err)
			}
		}
		out = append(out, line)
	}
	return out
}

// score is what TextClaim makes of a half.
func (h corpusHalf) score(report func(format string, args ...any)) (precision, recall float64) {
	right, wrong := 0, 0
	for _, s := range h.claims {
		if TextClaim(s) {
			right++
		} else {
			report("missed: %q", s)
		}
	}
	for _, s := range h.innocent {
		if TextClaim(s) {
			wrong++
			report("refused wrongly: %q", s)
		}
	}
	report("%d of %d claims found, %d of %d innocent sentences refused", right, len(h.claims), wrong, len(h.innocent))
	return float64(right) / float64(max(1, right+wrong)), float64(right) / float64(len(h.claims))
}

func TestTextClaimOnTheCorpus(t *testing.T) {
	total := 0
	for _, c := range []struct {
		half                        string
		leastPrecision, leastRecall float64
	}{
		{"tuned", 1, 1},
		{"heldout", 0.97, 0.90},
	} {
		h := readHalf(t, c.half)
		total += len(h.claims) + len(h.innocent)
		if len(h.innocent) < len(h.claims) {
			t.Errorf("%s: %d innocent sentences beside %d claims, want at least as many", c.half, len(h.innocent), len(h.claims))
		}
		precision, recall := h.score(func(format string, args ...any) { t.Logf(c.half+": "+format, args...) })
		if precision < c.leastPrecision || recall < c.leastRecall {
			t.Errorf("%s: precision %.3f, recall %.3f, want at least %.2f and %.2f", c.half, precision, recall, c.leastPrecision, c.leastRecall)
		}
	}
	if total < 200 {
		t.Errorf("%d sentences, want at least 200", total)
	}
}

// Where a claim stands in a text, and how long the text is, makes no difference.
func TestTextClaimWithinText(t *testing.T) {
	innocent := strings.Join(readHalf(t, "tuned").innocent, "\n\n")
	words := strings.Repeat("and then the pump ", 150) // no end of a sentence for 600 words
	for name, text := range map[string]string{
		"last paragraph":          innocent + "\n\nThis upload was verified by this service.",
		"first paragraph":         "This upload was verified by this service.\n\n" + innocent,
		"between two":             innocent + "\n\nVerified by Accession\n\n" + innocent,
		"heading without stop":    "Inspection report\nVerified by this platform\nPump 4 of line 2",
		"last line without stop":  "Pump 4 of line 2\nVerified by this platform",
		"in spaced letters":       "V e r i f i e d b y A c c e s s i o n",
		"in a word broken twice":  "This docu-\n  ment was veri-\r\nfied by this service.",
		"over two lines":          "All of it and this document were\nverified by this service",
		"in a list":               "- pumps\n- this record was certified by the platform\n- valves",
		"in a sentence of no end": words + "this document was verified by this service " + words,
		"in JSON":                 `{"pump": 4, "evaluation_status": "verified"}`,
		"in a table":              "| evaluation status | certified |",
		"in HTML":                 "<p>Pump</p><p>This <em>docu</em>ment was verified by <a href='x'>this service</a></p>",
		"twice escaped":           "V&amp;#101;rified by Accession",
		"in parentheses":          "Report on pump 4 (verified by this service), second edition",
		"carriage returns":        "This document\r\nwas certified\r\nby this service.\r\n",
		"glued":                   "thisdocumentverifiedbyaccession.pdf",
		"invalid UTF-8 beside it": "\xff\xfe Verified by Accession \x80",
	} {
		if !TextClaim(text) {
			t.Errorf("%s: not found", name)
		}
	}
	for name, text := range map[string]string{
		"nothing":                "",
		"all that is innocent":   innocent,
		"in two paragraphs":      "Records of pumps verified\n\nby this service three valves were delivered",
		"in two items of a list": "- records of pumps verified\n- by this service three valves were delivered",
		"denied in one word":     "Unverified by Accession",
		"only invalid":           "\xff\xfe\x80",
	} {
		if TextClaim(text) {
			t.Errorf("%s: refused", name)
		}
	}
}

// A sentence of no end is read in pieces; a claim on the seam is found.
func TestTextClaimOnTheSeam(t *testing.T) {
	for before := maxSentenceWords - 12; before <= maxSentenceWords; before++ {
		if !TextClaim(strings.Repeat("pump ", before) + "this document was verified by this service " + strings.Repeat("pump ", 9)) {
			t.Errorf("not found after %d words", before)
		}
	}
}

func TestFieldClaim(t *testing.T) {
	for body, want := range map[string]string{ // "" for no claim
		// Names in every spelling, at any depth.
		`{"verified": true}`:                                         "/verified",
		`{"is_verified": true}`:                                      "/is_verified",
		`{"isVerified": "yes"}`:                                      "/isVerified",
		`{"ISVERIFIED": 1}`:                                          "/ISVERIFIED",
		`{"is-certified": true}`:                                     "/is-certified",
		`{"Certified By": "Accession"}`:                              "/Certified By",
		`{"v_e_r_i_f_i_e_d": true}`:                                  "/v_e_r_i_f_i_e_d",
		`{"vErIfIeD": true}`:                                         "/vErIfIeD",
		`{"vеrified": true}`:                                         "/vеrified", // Cyrillic е
		"{\"veri\u200bfied\": true}":                                 "/veri\u200bfied",
		`{"verifiedAt": "2026-03-01T00:00:00Z"}`:                     "/verifiedAt",
		`{"endorsements": ["Accession"]}`:                            "/endorsements/0",
		`{"meta": {"labels": [{"x": 1}, {"endorsed": true}]}}`:       "/meta/labels/1/endorsed",
		`{"a/b": {"c~d": {"verified": true}}}`:                       "/a~1b/c~0d/verified",
		`{"certification_status": "granted"}`:                        "/certification_status",
		`{"zertifiziert": true}`:                                     "/zertifiziert",
		`{"vérifié": true}`:                                          "/vérifié",
		`{"certificado": true}`:                                      "/certificado",
		`{"verification": {"by": "x", "status": "passed"}}`:          "/verification/status",
		`{"verification": {"method": "audit"}}`:                      "/verification/method",
		`{"filename": {"verified": true}}`:                           "/filename/verified",
		`[{"verified": true}]`:                                       "/0/verified",
		`{"b": {"verified": true}, "a": {"certified": true}}`:        "/a/certified",
		`{"verified": false, "verifiedBy": null, "verified2": true}`: "/verified2",
		// Names that deny.
		`{"unverified": false}`:   "/unverified",
		`{"not_certified": "no"}`: "/not_certified",
		// Rankings: any number.
		`{"rank": 1}`:                  "/rank",
		`{"rank": 0}`:                  "/rank",
		`{"industryRanking": "first"}`: "/industryRanking",
		`{"ranking": {"position": 3}}`: "/ranking/position",
		`{"ranked": true}`:             "/ranked",
		// Evaluation status: only not_evaluated will do.
		`{"evaluation_status": "verified"}`:       "/evaluation_status",
		`{"evaluationStatus": "evaluated"}`:       "/evaluationStatus",
		`{"evaluation_status": "unverified"}`:     "/evaluation_status",
		`{"evaluation_status": ""}`:               "/evaluation_status",
		`{"evaluation_status": false}`:            "/evaluation_status",
		`{"evaluation": {"status": "pending"}}`:   "/evaluation/status",
		`{"consent": {"evaluation-status": "x"}}`: "/consent/evaluation-status",
		// Values that are a verdict.
		`{"status": "verified"}`:                                  "/status",
		`{"badge": "Officially Certified"}`:                       "/badge",
		`{"tags": ["pump", "endorsed"]}`:                          "/tags/1",
		`{"comment": "This upload was verified by the service."}`: "/comment",
		`{"uploader": {"notes": "Verified by Accession"}}`:        "/uploader/notes",

		// Nothing asserted.
		`{}`:                                     "",
		`null`:                                   "",
		`"verified"`:                             "",
		`{"verified": false}`:                    "",
		`{"verified": null}`:                     "",
		`{"verified": 0}`:                        "",
		`{"verified": ""}`:                       "",
		`{"verified": "No"}`:                     "",
		`{"verified": "N/A"}`:                    "",
		`{"verified": []}`:                       "",
		`{"verified": {}}`:                       "",
		`{"verified": "Not yet verified"}`:       "",
		`{"verification_status": "unverified"}`:  "",
		`{"verificationStatus": "notEvaluated"}`: "",
		`{"verification": {"status": "none", "note": "no audit"}}`: "",
		`{"verification_required": true}`:                          "",
		`{"certificationPending": true}`:                           "",
		`{"unverified": true}`:                                     "",
		`{"not_endorsed": true}`:                                   "",
		`{"rank": null}`:                                           "",
		`{"frank": 1, "crankcase": 2, "franking": "x"}`:            "",
		`{"certificate_number": "4711"}`:                           "",
		`{"verify": true}`:                                         "",
		`{"evaluation_status": "not_evaluated"}`:                   "",
		`{"evaluation_status": "Not-Evaluated"}`:                   "",
		`{"evaluation_status": null}`:                              "",
		`{"status": "unverified"}`:                                 "",
		`{"source_url": "https://example.org/verified"}`:           "",
		`{"comment": "Our plant is ISO 9001 certified."}`:          "",
		// The texts of the body are TextClaim's.
		`{"filename": "verified", "notes": "certified", "payload": "endorsed", "reviewer": "ranked"}`: "",
		`{"filename": "r.txt", "payload": "p", "visibility": "public_profile", "content_type": "text/plain",
		  "consent": {"accepted": true, "beta_agreement_version": "2026-01", "ai_readable_use_consent_version": "1",
		  "text_hash_sha256": "ab", "consenting_user_id": "u1", "consenting_user_email": "a@example.org"}}`: "",
	} {
		var decoded any
		if err := json.Unmarshal([]byte(body), &decoded); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if path, found := FieldClaim(decoded); path != want || found != (want != "") {
			t.Errorf("%s: %q, %v, want %q", body, path, found, want)
		}
	}
}

func TestFieldClaimNumbersAsWritten(t *testing.T) {
	for number, want := range map[json.Number]bool{"1": true, "0": false, "0.0": false, "1e9999": true} {
		if _, found := FieldClaim(map[string]any{"verified": number}); found != want {
			t.Errorf("verified: %s: found %v, want %v", number, found, want)
		}
	}
	if _, found := FieldClaim(map[string]any{"rank": json.Number("0")}); !found {
		t.Error("rank 0 not found")
	}
}

func TestFieldClaimCutsLongPaths(t *testing.T) {
	long := strings.Repeat("x", maxClaimPathBytes)
	body := map[string]any{"short": map[string]any{long: map[string]any{"verified": true}}}
	if path, found := FieldClaim(body); path != "/short" || !found {
		t.Errorf("%q, %v, want the nearest ancestor that fits", path, found)
	}
	deep := any(true)
	for range 5000 {
		deep = map[string]any{"verified": []any{deep}}
	}
	if path, found := FieldClaim(deep); !found || len(path) > maxClaimPathBytes {
		t.Errorf("%d bytes, %v", len(path), found)
	}
}

func FuzzTextClaim(f *testing.F) {
	for _, half := range []string{"tuned", "heldout"} {
		h := readHalf(f, half)
		for _, s := range append(h.claims, h.innocent...) {
			f.Add(s)
		}
	}
	f.Add("<" + strings.Repeat("a-\n", 9) + "&#x3c;b>\x00v\u0301\u200de r i f")
	f.Fuzz(func(t *testing.T, text string) {
		TextClaim(text)
		// Whatever stands before a claim, it is found.
		if !TextClaim(text + "\n\nThis upload was verified by Accession.\n") {
			t.Errorf("a claim after %q is not found", text)
		}
	})
}

func FuzzFieldClaim(f *testing.F) {
	f.Add(`{"a": [{"verified": true}], "evaluation": {"status": 1}}`)
	f.Add(`{"rank": 1e400, "un": {"verified": [null, {}]}}`)
	f.Add(`{"~/": {"": "certified"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		var v any
		if decoder.Decode(&v) != nil {
			return
		}
		path, found := FieldClaim(v)
		if again, foundAgain := FieldClaim(v); again != path || foundAgain != found {
			t.Errorf("%q and %q for the same body", path, again)
		}
		if !found {
			return
		}
		at := v
		for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			here := false
			switch inner := at.(type) {
			case map[string]any:
				at, here = inner[step]
			case []any:
				if i, err := strconv.Atoi(step); err == nil && i < len(inner) {
					at, here = inner[i], true
				}
			}
			if !here && path != "" { // "" is what is left of a path whose first name is too long
				t.Fatalf("%q points at nothing in %s", path, body)
			}
		}
	})
}

// BenchmarkClaimsCorpus prints what the rules are worth: precision and recall on both halves.
func BenchmarkClaimsCorpus(b *testing.B) {
	for _, half := range []string{"tuned", "heldout"} {
		b.Run(half, func(b *testing.B) {
			h := readHalf(b, half)
			var precision, recall float64
			for b.Loop() {
				precision, recall = h.score(func(string, ...any) {})
			}
			b.ReportMetric(precision, "precision")
			b.ReportMetric(recall, "recall")
			b.ReportMetric(float64(len(h.claims)+len(h.innocent)), "sentences")
		})
	}
}

// BenchmarkClaimsText reads 100 KiB: ordinary text, nothing but sentences about verdicts, and what is slowest to look at.
func BenchmarkClaimsText(b *testing.B) {
	verdicts := strings.Join(append(readHalf(b, "tuned").innocent, readHalf(b, "heldout").innocent...), "\n\n") + "\n\n"
	for _, c := range []struct{ name, text string }{
		{"ordinary", "The pump was dismantled on 3 May. The bearing showed wear on the drive side, and the fitter replaced it " +
			"with a new one of the same make. The report of the second shift lists all parts; none of them was damaged.\n"},
		{"accents", "Der Prüfer hat das Gerät geöffnet und für größtenteils überholt erklärt. "},
		{"verdicts", verdicts},
		{"glued", "rankaccessionbythisserviceverifythedocumentsfileofrank1 "},
		{"endless", "neither verified document of the system manager "},
	} {
		text := strings.Repeat(c.text, 100<<10/len(c.text)+1)[:100<<10]
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if TextClaim(text) {
					b.Fatal("took it for a claim")
				}
			}
		})
	}
}
