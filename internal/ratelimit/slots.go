package ratelimit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Slots are how many requests of a class may be under way at once in one process; a class without a row is not limited.
type Slots map[Class]int

// DefaultSlots bound memory and files, not busy integrations. Reads are many because those that wait for a change take a slot, too.
var DefaultSlots = Slots{Read: 1024, Write: 512, Upload: 256, Token: 64, Sandbox: 64, Stranger: 256}

// ParseSlots reads "off", or slots such as "upload=64,read=512" over those of DefaultSlots; a class may be off too. Errors say
// what to change.
func ParseSlots(text string) (Slots, error) {
	if text = strings.TrimSpace(text); text == "off" {
		return Slots{}, nil
	}
	slots, seen := Slots{}, map[Class]bool{}
	for class, n := range DefaultSlots {
		slots[class] = n
	}
	known := append(slices.DeleteFunc(slices.Clone(classes), func(c Class) bool { return c == Address }), Stranger)
	for setting := range strings.SplitSeq(text, ",") {
		if setting = strings.TrimSpace(setting); setting == "" {
			continue
		}
		name, value, _ := strings.Cut(setting, "=")
		class := Class(strings.TrimSpace(name))
		if !slices.Contains(known, class) {
			return nil, fmt.Errorf("%q is no class of requests: use one of %s", name, strings.Trim(fmt.Sprint(known), "[]"))
		}
		if seen[class] {
			return nil, fmt.Errorf("the class %s is set twice", class)
		}
		seen[class] = true
		if value = strings.TrimSpace(value); value == "off" {
			delete(slots, class)
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1_000_000 {
			return nil, fmt.Errorf("%s: %q must be off, or requests at once (1 to 1000000), such as 64", class, value)
		}
		slots[class] = n
	}
	return slots, nil
}

// Gate lets as many requests in as there are slots, and of one organization no more than half of those, rounded up: whoever floods
// a class leaves the other half to the others.
type Gate struct {
	slots Slots

	mu     sync.Mutex
	inside map[Class]map[string]int
	total  map[Class]int
}

// NewGate makes a gate with nobody inside.
func NewGate(slots Slots) *Gate {
	return &Gate{slots: slots, inside: map[Class]map[string]int{}, total: map[Class]int{}}
}

// Enter takes a slot of the class for who; leave gives it back, and is called once. ok is false where there is none.
func (g *Gate) Enter(class Class, who string) (leave func(), ok bool) {
	slots, bound := g.slots[class]
	if !bound {
		return func() {}, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	inside := g.inside[class]
	if inside == nil {
		inside = map[string]int{}
		g.inside[class] = inside
	}
	if g.total[class] >= slots || inside[who] >= (slots+1)/2 {
		return nil, false
	}
	g.total[class]++
	inside[who]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.total[class]--
		if inside[who]--; inside[who] == 0 {
			delete(inside, who)
		}
	}, true
}
