package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const (
	configFlag = "config"
	fileSuffix = "-file" // of the setting that names a file with a secret one

	maxConfigBytes = 1 << 20
)

// load reads every setting from where it was given: flag, else environment, else configuration file, else default. It
// refuses what is not of the setting's type, and keys that are no setting.
func (s *settings) load(f *pflag.FlagSet) error {
	path, at := s.getenv(environment(configFlag)), environment(configFlag)
	if f.Changed(configFlag) {
		path, at = f.Lookup(configFlag).Value.String(), "--"+configFlag
	}
	keys := map[string]given{}
	s.secrets = nil
	if path != "" {
		var err error
		if keys, err = s.readConfig(path); err != nil {
			return usagef("%s: %v", at, err)
		}
	}
	for _, one := range s.all {
		if err := s.find(one, f, keys); err != nil {
			return err
		}
		if err := one.set(); err != nil {
			return usagef("%s %v", one.given.at, err)
		}
	}
	return nil
}

// find notes what was given for a setting, by the first source that says anything.
func (s *settings) find(one *setting, f *pflag.FlagSet, keys map[string]given) error {
	one.given = given{text: one.fallback, by: byDefault}
	for _, from := range []func(name string) given{
		func(name string) given {
			if !f.Changed(name) {
				return given{}
			}
			return given{f.Lookup(name).Value.String(), byFlag, "--" + name}
		},
		func(name string) given { return given{s.getenv(environment(name)), byEnvironment, environment(name)} },
		func(name string) given { return keys[key(name)] },
	} {
		said := from(one.name)
		if one.secret != "" {
			place := from(one.name + fileSuffix)
			if said.text != "" && place.text != "" {
				return usagef("%s and %s: give one of them", said.at, place.at)
			}
			if place.text != "" {
				secret, err := readSecret(place.text)
				if err != nil {
					return usagef("%s: %v", place.at, err)
				}
				said = given{secret, place.by, place.at}
				s.secrets = append(s.secrets, secretFile{place.at, place.text})
			}
		}
		if said.at != "" && (said.text != "" || said.by != byEnvironment) { // an empty variable is as good as none
			one.given = said
			return nil
		}
	}
	return nil
}

// set gives the field its value. The error follows the setting's name; it never has the value in it.
func (one *setting) set() (err error) {
	text := one.given.text
	switch one.value.Interface().(type) {
	case string:
		one.value.SetString(text)
	case bool:
		b := false
		if text != "" {
			b, err = strconv.ParseBool(text)
		}
		if err != nil {
			return errors.New("must be true or false")
		}
		one.value.SetBool(b)
	case int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New(one.wholeNumber())
		}
		one.value.SetInt(n)
	case time.Duration:
		d := time.Duration(0)
		if text != "" {
			d, err = time.ParseDuration(text)
		}
		if err != nil {
			return errors.New("must be a duration, such as 90s, 30m or 24h")
		}
		one.value.SetInt(int64(d))
	}
	return nil
}

func (one *setting) wholeNumber() string {
	if one.kind() == "bytes" {
		return "must be a whole number of bytes, such as 16777216"
	}
	return "must be a whole number"
}

// readSecret is the content of a file without the line end that editors leave.
func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxTokenFileBytes+1))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" || len(content) > maxTokenFileBytes {
		return "", fmt.Errorf("%s has to hold the value and nothing else", path)
	}
	return secret, nil
}

// secretFile is a file with a secret in it, and how to name it to whoever said where it is.
type secretFile struct{ at, path string }

// exposed warns of secrets that everybody on the machine may read.
func (s *settings) exposed() (warnings []string) {
	files := slices.Clone(s.secrets)
	for _, one := range s.all {
		if one.name == "tls-key" || one.name == "keys" {
			files = append(files, secretFile{cmp.Or(one.given.at, one.name), one.value.String()})
		}
	}
	for _, f := range files {
		info, err := os.Stat(f.path) // a URL, or what is not there yet, is no file
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
			warnings = append(warnings, f.at+" is a secret, and everybody on this machine may read or change its file: chmod o-rwx "+f.path)
		}
	}
	return warnings
}

// key is a setting's name in the configuration file.
func key(name string) string { return strings.ReplaceAll(name, "-", "_") }

// readConfig reads the configuration file: one mapping from settings to values. Whatever else is in it is an error that has
// its line: an unknown key would be a setting that somebody believes in.
func (s *settings) readConfig(path string) (map[string]given, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxConfigBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxConfigBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes: is it the right file?", path, maxConfigBytes)
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	} else if err != nil {
		return nil, fmt.Errorf("%s: %v", path, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is more than one YAML document in it", path)
	}
	root := document.Content[0]
	if root.ShortTag() == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s, line %d: must be lines such as listen: 127.0.0.1:8080", path, root.Line)
	}
	known := map[string]*setting{}
	for _, one := range s.all {
		known[key(one.name)] = one
		if one.secret != "" {
			known[key(one.name+fileSuffix)] = &setting{value: reflect.ValueOf("")}
		}
	}
	found := map[string]given{}
	for name, value := range pairsOf(root) {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("%s, line %d: %s "+format, append([]any{path, name.Line, name.Value}, args...)...)
		}
		one := known[name.Value]
		if one == nil {
			return nil, fail("is no setting%s", near(name.Value, slices.Collect(maps.Keys(known))))
		}
		if _, twice := found[name.Value]; twice {
			return nil, fail("is there twice")
		}
		if one.secret == "yes" {
			return nil, fail("does not stand in this file: name a file that holds it with %s", key(one.name+fileSuffix))
		}
		text, err := one.scalar(value)
		if err != nil {
			return nil, fail("%v", err)
		}
		found[name.Value] = given{text, byFile, fmt.Sprintf("%s (%s, line %d)", name.Value, path, name.Line)}
	}
	return found, nil
}

// pairsOf goes through a mapping in the order of the file.
func pairsOf(mapping *yaml.Node) func(yield func(name, value *yaml.Node) bool) {
	return func(yield func(name, value *yaml.Node) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

// scalar is a value of the file as one would write it on the command line.
func (one *setting) scalar(value *yaml.Node) (string, error) {
	var items []string
	switch {
	case value.Kind == yaml.SequenceNode && (one.form == "list" || one.form == "pairs"):
		for _, item := range value.Content {
			text, err := word(item)
			if err != nil {
				return "", err
			}
			items = append(items, text)
		}
		return strings.Join(items, ","), nil
	case value.Kind == yaml.MappingNode && one.form == "pairs":
		there := map[string]bool{}
		for name, item := range pairsOf(value) {
			text, err := word(item)
			if err != nil {
				return "", err
			}
			if there[name.Value] {
				return "", fmt.Errorf("has %s twice", name.Value)
			}
			there[name.Value] = true
			items = append(items, name.Value+"="+text)
		}
		return strings.Join(items, ","), nil
	case value.Kind != yaml.ScalarNode:
		return "", errors.New("must have one plain value")
	case value.ShortTag() == "!!null":
		return "", errors.New("has no value; leave the line out to have the default")
	}
	want, says := "!!str", "must be text; put it in quotes"
	switch one.kind() {
	case "bytes", "number":
		want, says = "!!int", one.wholeNumber()+", without quotes"
	case "bool":
		want, says = "!!bool", "must be true or false, without quotes"
	case "duration":
		says = "must be a duration, such as 90s, 30m or 24h"
		if value.Value == "0" {
			return "0", nil
		}
	}
	if value.ShortTag() != want {
		return "", errors.New(says)
	}
	if want == "!!int" { // 0x10, 0o17 and 1_000 are numbers, too
		var n int64
		if err := value.Decode(&n); err != nil {
			return "", errors.New(says)
		}
		return strconv.FormatInt(n, 10), nil
	}
	return value.Value, nil
}

// word is one item of a list; a comma in it would make two.
func word(item *yaml.Node) (string, error) {
	if item.Kind != yaml.ScalarNode || item.ShortTag() == "!!null" || strings.Contains(item.Value, ",") {
		return "", errors.New("must be a list of plain values")
	}
	return item.Value, nil
}

// elsewhere are the variables that other commands than serve read, or that containers set.
var (
	elsewhere = []string{envServer, envOrg, envToken, envProfile, environment(configFlag)}
	otherwise = regexp.MustCompile(`^ACCESSION_(CONSENT_|CRASH_|TEST_|FUZZ_|.*_?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_(TCP|UDP)(_(ADDR|PORT|PROTO))?)?)$)`)
)

// doubts are settings that work and are hardly meant: those that check found, and variables that look like settings and are
// none. These are no errors: container platforms add variables named after the services they know.
func (s *settings) doubts(environ []string) []string {
	return append(slices.Clone(s.warnings), s.unread(environ)...)
}

func (s *settings) unread(environ []string) (warnings []string) {
	known := slices.Clone(elsewhere)
	for _, one := range s.all {
		known = append(known, environment(one.name))
		if one.secret != "" {
			known = append(known, environment(one.name+fileSuffix))
		}
	}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "ACCESSION_") && !slices.Contains(known, name) && !otherwise.MatchString(name) {
			warnings = append(warnings, name+" is no setting"+near(name, known))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// near suggests a name that differs by little from one that nobody knows.
func near(name string, known []string) string {
	best, distance := "", 3
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := edits(name, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits is the Levenshtein distance of a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
