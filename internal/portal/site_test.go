package portal_test

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// files of the site with an ending, by name, with what is in them.
func files(t testing.TB, folder, ending string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ending) {
			continue
		}
		content, err := os.ReadFile(path.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(content)
	}
	if len(found) == 0 {
		t.Fatalf("no %s in %s", ending, folder)
	}
	return found
}

func pages(t testing.TB) map[string]string   { return files(t, "site", ".html") }
func modules(t testing.TB) map[string]string { return files(t, "site/assets", ".js") }
func styles(t testing.TB) map[string]string  { return files(t, "site/assets", ".css") }

var (
	inlineScript = regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:`)
	address      = regexp.MustCompile(`(?i)(?:href|src|action|poster|data)="([^"]*)"`)
	titled       = regexp.MustCompile(`<title>[^<]*</title>`)
	ownFiles     = regexp.MustCompile(`(?m)^<(?:script type="module" src="/assets/(?:[^"]*)"></script>|link rel="stylesheet" href="/assets/[^"]*">)\n`)
)

// The policy would refuse what stands inside a page; other origins too. Better seen here than by a person.
func TestPagesHoldNothingThatThePolicyRefuses(t *testing.T) {
	for name, page := range pages(t) {
		if bad := inlineScript.FindString(page); bad != "" {
			t.Errorf("%s: %q is script or style inside the page; put it into a file under assets", name, bad)
		}
		for _, at := range address.FindAllStringSubmatch(page, -1) {
			to := at[1]
			if !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "#") || strings.HasPrefix(to, "//") {
				t.Errorf("%s leads to %q: write a path of this service that begins with /", name, to)
			}
			if file, ok := strings.CutPrefix(to, "/assets/"); ok {
				if _, err := os.Stat(path.Join("site/assets", file)); err != nil {
					t.Errorf("%s needs %s, which is not there", name, to)
				}
			} else if page, ok := strings.CutPrefix(to, "/portal/"); ok {
				if _, err := os.Stat(path.Join("site", page+".html")); err != nil {
					t.Errorf("%s leads to %s, which is not there", name, to)
				}
			}
		}
	}
}

// Pages have one frame: head, header with all sections, footer; each has a title, one main and one heading of its own.
func TestPagesShareOneFrame(t *testing.T) {
	frame := func(page string) (string, string, string) {
		main, end := strings.Index(page, "<main "), strings.Index(page, "</main>")
		if main < 0 || end < main {
			return "", "", ""
		}
		return ownFiles.ReplaceAllString(titled.ReplaceAllString(page[:main], "<title></title>"), ""), page[main:end], page[end:]
	}
	all := pages(t)
	before, _, after := frame(all["home.html"])
	if before == "" {
		t.Fatal("home has no main")
	}
	titles := map[string]string{}
	for name, page := range all {
		b, own, a := frame(page)
		if b != before || a != after {
			t.Errorf("%s: head, header or footer differ from those of home.html; they begin to at\n%.200s", name, difference(b+a, before+after))
		}
		if strings.Count(page, "<main ") != 1 || strings.Count(own, "<h1") != 1 || !strings.Contains(own, `id="main"`) || !strings.Contains(own, `tabindex="-1"`) {
			t.Errorf(`%s: it needs one <main id="main" tabindex="-1"> with one h1`, name)
		}
		title := titled.FindString(page)
		if other, ok := titles[title]; ok || !strings.Contains(title, "accession") {
			t.Errorf("%s: the title %s needs the name of the service, and to differ from that of %s", name, title, other)
		}
		titles[title] = name
	}
}

func difference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[n:]
}

var (
	imported = regexp.MustCompile("(?m)(?:^(?:import|export|\\}) (?:[^'\"`\\n]*\\bfrom )?|\\bimport\\(|new Worker\\()['\"`]([^'\"`]+)['\"`]")
	// what would make markup or code of a text
	parses = regexp.MustCompile(`\.(?:innerHTML|outerHTML)\b|insertAdjacentHTML|document\.write|createContextualFragment|setHTML|srcdoc|DOMParser|\beval\(|new Function\(|setTimeout\(['"]`)
	// what would keep something in the browser; a credential must not come near it
	keeps = regexp.MustCompile(`localStorage|sessionStorage|indexedDB|document\.cookie`)
)

func TestModulesTreatDataAsText(t *testing.T) {
	all := modules(t)
	for name, module := range all {
		if bad := parses.FindString(module); bad != "" {
			t.Errorf("%s: %s makes markup of text; use el and textContent", name, bad)
		}
		for _, at := range imported.FindAllStringSubmatch(module, -1) {
			to := strings.TrimPrefix(strings.TrimPrefix(at[1], "./"), "/assets/")
			if strings.Contains(to, "${") {
				continue // the operator's sections
			}
			if _, ok := all[to]; !ok {
				t.Errorf("%s imports %q, which is not there", name, at[1])
			}
		}
	}
	for _, name := range []string{"api.js", "signin.js", "portal.js", "dialog.js", "operator-credentials.js", "operator-webhooks.js"} {
		if bad := keeps.FindString(all[name]); bad != "" {
			t.Errorf("%s sees secrets and uses %s", name, bad)
		}
	}
}

func TestStylesLoadNothing(t *testing.T) {
	loads := regexp.MustCompile(`@import|url\(|expression\(`)
	for name, style := range styles(t) {
		if bad := loads.FindString(style); bad != "" {
			t.Errorf("%s: %s", name, bad)
		}
	}
}

// A first visit is small: the page and all that it loads, before anybody presses anything.
func TestFirstPagesAreSmall(t *testing.T) {
	const most = 150 << 10
	all := modules(t)
	for name, page := range pages(t) {
		size := len(page)
		seen := []string{}
		var load func(file string)
		load = func(file string) {
			if slices.Contains(seen, file) {
				return
			}
			seen = append(seen, file)
			content, err := os.ReadFile(path.Join("site/assets", file))
			if err != nil {
				t.Fatal(err)
			}
			size += len(content)
			if _, ok := all[file]; ok {
				for _, at := range imported.FindAllStringSubmatch(string(content), -1) {
					if to := strings.TrimPrefix(strings.TrimPrefix(at[1], "./"), "/assets/"); !strings.Contains(to, "${") {
						load(to)
					}
				}
			}
		}
		for _, at := range address.FindAllStringSubmatch(page, -1) {
			if file, ok := strings.CutPrefix(at[1], "/assets/"); ok {
				load(file)
			}
		}
		if size > most {
			t.Errorf("%s: %d bytes with %d files; at most %d", name, size, len(seen), most)
		}
		t.Logf("%s: %d bytes, %d files", name, size, len(seen))
	}
}
