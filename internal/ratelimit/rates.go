package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Class is one kind of request; each has a rate of its own, so that a busy class leaves the others alone.
type Class string

// Classes. All but Address count one credential, or, where an operation takes none, one address.
const (
	Read    Class = "read"    // answers that change nothing
	Write   Class = "write"   // everything else that changes something
	Upload  Class = "upload"  // parts: one document is many of them
	Token   Class = "token"   // OAuth tokens, and signing in to the portal
	Sandbox Class = "sandbox" // the sandbox, its keys included
	Address Class = "address" // every request of one address, before anybody knows who asks

	Stranger Class = "stranger" // what strangers read: it has slots alone
)

// Rate is what one credential or address may do: Burst requests at once, and PerSecond in the long run. In any window of t
// seconds that is at most PerSecond·t + Burst requests.
type Rate struct {
	PerSecond float64 // 0.001 to 100,000
	Burst     int     // 1 to 1,000,000
}

// Rates has a row per class; a class without one is not limited.
type Rates map[Class]Rate

// Default leaves a single busy integration alone. An address may be many credentials: it gets more than each of them.
// (Contract decisions, "Starting it".)
var Default = Rates{
	Read: {50, 200}, Write: {50, 200}, Upload: {200, 800}, Token: {5, 50}, Sandbox: {20, 100}, Address: {400, 1600},
}

var classes = []Class{Read, Write, Upload, Token, Sandbox, Address}

// Parse reads "off", or rates such as "read=50/200,write=20/100" (requests per second / burst) over those of Default; a
// class may be off too ("upload=off"). Errors say what to change.
func Parse(text string) (Rates, error) {
	if text = strings.TrimSpace(text); text == "off" {
		return Rates{}, nil
	}
	rates, seen := Rates{}, map[Class]bool{}
	for class, rate := range Default {
		rates[class] = rate
	}
	for setting := range strings.SplitSeq(text, ",") {
		if setting = strings.TrimSpace(setting); setting == "" {
			continue
		}
		name, value, _ := strings.Cut(setting, "=")
		class := Class(strings.TrimSpace(name))
		if !slices.Contains(classes, class) {
			return nil, fmt.Errorf("%q is no class of requests: use one of %s", name, strings.Trim(fmt.Sprint(classes), "[]"))
		}
		if seen[class] {
			return nil, fmt.Errorf("the class %s is set twice", class)
		}
		seen[class] = true
		if value = strings.TrimSpace(value); value == "off" {
			delete(rates, class)
			continue
		}
		rate, err := parseRate(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", class, err)
		}
		rates[class] = rate
	}
	return rates, nil
}

func parseRate(text string) (Rate, error) {
	perSecond, burst, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(perSecond, 64)
	b, burstErr := strconv.Atoi(burst)
	if err != nil || burstErr != nil || !(n >= 0.001 && n <= 100_000) || b < 1 || b > 1_000_000 {
		return Rate{}, fmt.Errorf("%q must be off, or requests per second (0.001 to 100000) / burst (1 to 1000000), such as 50/200", text)
	}
	return Rate{n, b}, nil
}

// interval between two requests at the rate; rounded up, so that the rate is never exceeded.
func (r Rate) interval() time.Duration {
	return time.Duration(math.Ceil(float64(time.Second) / r.PerSecond))
}
