package aicontext

import (
	"slices"
	"strings"
	"testing"
)

// Published examples of the identifiers, with a cue where one is needed.
var nationalExamples = []struct{ class, cue, id string }{
	{"at", "Sozialversicherungsnummer", "1237 010180"}, {"be", "", "85.07.30-033.28"}, {"be", "Rijksregisternummer", "85073003328"},
	{"br", "", "111.444.777-35"}, {"br", "CPF", "52998224725"}, {"ch", "", "756.9217.0769.85"}, {"cn", "", "11010519491231002X"},
	{"de", "Steuer-ID", "86 095 742 719"}, {"de", "IdNr.", "47036892816"}, {"de", "", "65 170839 J 003"}, {"dk", "CPR-nr.", "211062-5629"},
	{"es", "DNI", "12345678Z"}, {"es", "", "X1234567L"}, {"fi", "", "131052-308T"}, {"fr", "", "2 55 08 14 168 025 38"},
	{"gb", "NHS number", "943 476 5870"}, {"gb", "", "AB 12 34 56 C"}, {"gb", "NINO", "AB123456C"}, {"in", "Aadhaar", "2341 2341 2346"},
	{"it", "", "RSSMRA85T10A562S"}, {"jp", "マイナンバー", "1234 5678 9018"}, {"nl", "BSN", "111222333"}, {"no", "Fødselsnummer", "151086 95088"},
	{"pl", "PESEL", "44051401359"}, {"pt", "Contribuinte", "123 456 789"}, {"ru", "", "112-233-445 95"}, {"se", "Personnummer", "811228-9874"},
	{"us", "SSN", "219-09-9999"},
}

func TestNationalIDs(t *testing.T) {
	countries := map[string]bool{}
	for _, e := range nationalExamples {
		countries[e.class] = true
		class := "national_id_" + e.class
		page := []Page{{Text: "Filed: " + e.cue + " " + e.id + ", checked."}}
		if got := places(t, page, SignalPersonalData, class); !slices.Equal(got, []string{e.id}) {
			t.Errorf("%s: %q, want %q", class, got, e.id)
		}
		if e.cue != "" {
			if got := places(t, []Page{{Text: "Filed: " + e.id + ", checked."}}, SignalPersonalData, class); len(got) > 0 {
				t.Errorf("%s without its cue: %q", class, got)
			}
		}
		for _, around := range []string{"Filed: " + e.cue + " A%", "Filed: " + e.cue + " 9%", "Filed: " + e.cue + " %7", "Filed: " + e.cue + " 7-%", "Filed: " + e.cue + " %-7"} {
			text := strings.Replace(around, "%", e.id, 1)
			if got := places(t, []Page{{Text: text}}, SignalPersonalData, class); slices.Contains(got, e.id) {
				t.Errorf("%s: found in %q, where it is part of something longer", class, text)
			}
		}
		// Every digit is under a checksum, but for those that have none.
		if e.class == "us" || e.class == "dk" || e.class == "gb" && e.cue != "NHS number" {
			continue
		}
		for i := range len(e.id) {
			if !isDigit(e.id[i]) {
				continue
			}
			wrong := []byte(e.id)
			wrong[i] = '0' + (wrong[i]-'0'+1)%10
			if got := places(t, []Page{{Text: e.cue + " " + string(wrong)}}, SignalPersonalData, class); len(got) > 0 {
				t.Errorf("%s: %q found with a wrong digit", class, got)
			}
		}
	}
	for _, id := range nationalIDs {
		if !countries[id.country] {
			t.Errorf("no example of %s", id.country)
		}
		if c := id.pattern[0]; c != '9' && c != 'A' {
			t.Errorf("pattern %q: begins with 9 or A", id.pattern)
		}
	}
}

func TestNationalIDsThatAreNeverIssued(t *testing.T) {
	for _, text := range []string{
		"SSN 000-12-3456", "SSN 666-12-3456", "SSN 912-12-3456", "SSN 219-00-9999", "SSN 219-09-0000",
		"National Insurance QQ 12 34 56 C", "National Insurance BG 12 34 56 C", "National Insurance AB 12 34 56 E",
		"CPF 111.111.111-11", "BSN 000000000", "Steuer-ID 11111111111", "PESEL 44131401351", "NHS 000 000 0000", "Aadhaar 1341 2341 2346",
	} {
		for _, s := range Signals([]Page{{Text: text}}) {
			t.Errorf("%s in %q", s.Class, text)
		}
	}
}

func TestCuesStandNearBy(t *testing.T) {
	for text, want := range map[string]int{
		"BSN 111222333":        1,
		"bsn:\n111222333":      1,
		"111222333 (BSN)":      1,
		"BSN-nummer 111222333": 1,
		"ABSNX 111222333":      0,
		"BSN " + strings.Repeat("x ", 40) + "111222333":           0,
		"BSN" + strings.Repeat("\n111222333\n123456782", 10):      20,
		"BSN 111222333 " + strings.Repeat("x ", 99) + "123456782": 1,
	} {
		if got := places(t, []Page{{Text: text}}, SignalPersonalData, "national_id_nl"); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

func TestTravelDocuments(t *testing.T) {
	// The specimens of ICAO Doc 9303.
	passport := "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"
	card := "I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6\nERIKSSON<<ANNA<MARIA<<<<<<<<<<"
	small := "I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<\nD231458907UTO7408122F1204159<<<<<<<6"
	visa := "V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL8988901C4XXX4009078F96121096ZE184226B<<<<<<"
	for _, zone := range []string{passport, card, small, visa} {
		text := "Holder:\n\n" + zone + "\n\nend << here"
		if got := places(t, []Page{{Text: text}}, SignalPersonalData, "mrz"); !slices.Equal(got, []string{PageText(zone)}) {
			t.Errorf("%q, want %q", got, zone)
		}
		for i, c := range []byte(zone) {
			if !isDigit(c) || zone == visa && i >= len(zone)-16 { // a visa's optional data has no check digit
				continue
			}
			wrong := []byte(zone)
			wrong[i] = '0' + (c-'0'+1)%10
			if got := places(t, []Page{{Text: string(wrong)}}, SignalPersonalData, "mrz"); len(got) > 0 {
				t.Errorf("%q found with a wrong digit", got)
			}
		}
	}
}
