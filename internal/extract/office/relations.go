package office

import (
	"path"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const maxRelations = 100_000 // of one part

// relation names a part that another part refers to.
type relation struct {
	kind   string // last word of its type: "slide", "header", …; the same in the transitional and the strict variant
	target string // name of a member
}

type relations struct {
	list []relation
	byID map[string]string // targets
	base string
}

// relationsOf reads what a part refers to inside the container; the container itself is the part "".
func (c *container) relationsOf(part string) (*relations, error) {
	r := &relations{base: path.Dir(part), byID: map[string]string{}}
	name := path.Join(path.Dir(part), "_rels", path.Base(part)+".rels")
	if part == "" {
		name = "_rels/.rels"
	}
	if !c.has(name) {
		return r, nil
	}
	return r, c.walk(name, "Relationships", r)
}

func (r *relations) start(e *element) error {
	if e.name != "Relationship" || e.attr("TargetMode") == "External" {
		return nil
	}
	if len(r.list) == maxRelations {
		return page.ErrTooLarge
	}
	target := strings.ReplaceAll(e.attr("Target"), `\`, "/")
	if strings.HasPrefix(target, "/") {
		target = path.Clean(target)[1:]
	} else {
		target = path.Join(r.base, target)
	}
	r.list = append(r.list, relation{path.Base(e.attr("Type")), target})
	r.byID[e.attr("Id")] = target
	return nil
}

func (r *relations) end(*element) error          { return nil }
func (r *relations) text(string, *element) error { return nil }

// target is the part that an id names, or empty.
func (r *relations) target(id string) string { return r.byID[id] }

// of lists the parts of that kind that are there.
func (r *relations) of(c *container, kind string) []string {
	var found []string
	for _, one := range r.list {
		if one.kind == kind && c.has(one.target) {
			found = append(found, one.target)
		}
	}
	return found
}

// main is the part that the container says is the document.
func (c *container) main() (string, error) {
	r, err := c.relationsOf("")
	if err != nil {
		return "", err
	}
	if found := r.of(c, "officeDocument"); len(found) == 1 {
		return found[0], nil
	}
	return "", page.ErrBroken
}
