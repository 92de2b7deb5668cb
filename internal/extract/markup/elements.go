package markup

import "strings"

type set map[string]bool

func setOf(names string) set {
	s := set{}
	for name := range strings.FieldsSeq(names) {
		s[name] = true
	}
	return s
}

func (s set) with(names string) set {
	for name := range s {
		names += " " + name
	}
	return setOf(names)
}

// What HTML says of its elements, as far as text is concerned.
var (
	voidElements = setOf("area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr")

	// With a blank line around them, and with a line of their own.
	paragraphElements = setOf("p h1 h2 h3 h4 h5 h6 ul ol menu dir dl blockquote pre listing xmp plaintext figure hr fieldset")
	lineElements      = setOf("address article aside body caption center dd details dialog div dt figcaption footer form header " +
		"hgroup html legend li main nav optgroup option search section summary tbody tfoot thead title tr")
	blockElements = paragraphElements.with("table td th button object template marquee applet").with(strings.Join(lineElements.names(), " "))

	literalElements = setOf("pre listing xmp plaintext")
	listElements    = setOf("ul ol menu dir")

	// Nobody reads what is inside: programs, what is shown only where something else cannot be, values of forms.
	// The title is read first, by itself.
	leftOut = setOf("script style template noscript svg iframe object noembed noframes applet audio video canvas " +
		"textarea select datalist title annotation annotation-xml")

	// Those whose end tag may be given although inner elements are still open, which then go on.
	formattingElements = setOf("a b big code em font i nobr s small strike strong tt u")

	closesParagraph = paragraphElements.with("table " + strings.Join(lineElements.names(), " "))

	// Elements that end an open <svg>, because they cannot be in one (HTML, 13.2.6.5).
	leavesSVG = setOf("b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing " +
		"menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var")
	htmlInSVG = setOf("foreignobject desc title")
)

func (s set) names() []string {
	var names []string
	for name := range s {
		names = append(names, name)
	}
	return names
}

// kind says, bit by bit, what an element is to those around it.
type kind uint16

const (
	paragraphKind kind = 1 << iota
	itemKind
	termKind
	cellKind
	rowKind
	rowsKind
	listKind
	termsKind
	scopeKind      // an end tag of what is outside of it has no effect inside
	tableScopeKind // … that of a part of a table
	blockKind

	kindCount = iota
)

var kinds = func() map[string]kind {
	all := map[string]kind{}
	for of, names := range map[kind]set{
		paragraphKind:  setOf("p"),
		itemKind:       setOf("li"),
		termKind:       setOf("dt dd"),
		cellKind:       setOf("td th"),
		rowKind:        setOf("tr"),
		rowsKind:       setOf("tbody thead tfoot caption"),
		listKind:       listElements,
		termsKind:      setOf("dl"),
		scopeKind:      setOf("table td th caption html object template button marquee applet"),
		tableScopeKind: setOf("table html template"),
		blockKind:      blockElements,
	} {
		for name := range names {
			all[name] |= of
		}
	}
	return all
}()

// closedBy is what a start tag ends by itself: the kind that it ends, and what it does not look beyond.
func closedBy(k kind) (ends, within kind) {
	switch {
	case k&itemKind != 0:
		return itemKind, scopeKind | listKind
	case k&termKind != 0:
		return termKind, scopeKind | termsKind
	case k&cellKind != 0:
		return cellKind, tableScopeKind
	case k&rowKind != 0:
		return rowKind, tableScopeKind
	case k&rowsKind != 0:
		return rowsKind, tableScopeKind
	}
	return 0, 0
}
