package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestRetryableTable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{&Error{Status: 500}, true},
		{&Error{Status: 502}, true},
		{&Error{Status: 503}, true},
		{&Error{Status: 429}, true},
		{&Error{Status: 408}, true},
		{&Error{Status: 409, Code: "idempotency_in_progress"}, true},
		{&Error{Status: 409, Code: "idempotency_conflict"}, false},
		{&Error{Status: 400}, false},
		{&Error{Status: 401}, false},
		{&Error{Status: 403}, false},
		{&Error{Status: 404}, false},
		{&Error{Status: 501}, false},
		{fmt.Errorf("part 1: %w", &NetworkError{Err: errors.New("reset")}), true},
		{ErrFileChanged, false},
		{ErrNotModified, false},
		{context.Canceled, false},
		{errors.New("other"), false},
	} {
		if got := Retryable(test.err); got != test.want {
			t.Errorf("Retryable(%v) = %v", test.err, got)
		}
	}
}

func TestRetryWaits(t *testing.T) {
	unavailable := &Error{Status: 503}
	for _, test := range []struct {
		name         string
		retry        Retry
		err          error
		attempts     int
		least, most  []time.Duration
		wantAttempts int
	}{
		{name: "doubles up to the longest", retry: Retry{Attempts: 5, First: time.Second, Longest: 3 * time.Second}, err: unavailable,
			least: []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond},
			most:  []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}, wantAttempts: 5},
		{name: "never sooner than Retry-After", retry: Retry{Attempts: 2}, err: &Error{Status: 429, RetryAfter: 20 * time.Second},
			least: []time.Duration{20 * time.Second}, most: []time.Duration{20 * time.Second}, wantAttempts: 2},
		{name: "gives up on a long Retry-After", err: &Error{Status: 429, RetryAfter: time.Hour}, wantAttempts: 1},
		{name: "one attempt", retry: Retry{Attempts: 1}, err: unavailable, wantAttempts: 1},
		{name: "final at once", err: &Error{Status: 404}, wantAttempts: 1},
	} {
		var waits []time.Duration
		test.retry.sleep = func(_ context.Context, wait time.Duration) error { waits = append(waits, wait); return nil }
		attempts := 0
		err := test.retry.Do(t.Context(), func(context.Context) error { attempts++; return test.err })
		if err != test.err || attempts != test.wantAttempts || len(waits) != len(test.least) {
			t.Errorf("%s: %d attempts, waits %v, %v", test.name, attempts, waits, err)
			continue
		}
		for i, wait := range waits {
			if wait < test.least[i] || wait > test.most[i] {
				t.Errorf("%s: wait %d was %v, want %v to %v", test.name, i+1, wait, test.least[i], test.most[i])
			}
		}
	}
}

func TestRetryAfterForms(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "-1": 0, "soon": 0, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		if got := retryAfter(map[string][]string{"Retry-After": {value}}); got != want {
			t.Errorf("Retry-After %q: %v, want %v", value, got, want)
		}
	}
	in := time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	if got := retryAfter(map[string][]string{"Retry-After": {in}}); got < 59*time.Minute || got > time.Hour {
		t.Errorf("Retry-After %q: %v", in, got)
	}
}

func TestDetailText(t *testing.T) {
	for detail, want := range map[string]string{
		``: "", `null`: "", `"clean"`: "clean", `{"pages":4,"ocr_pages":4}`: "ocr pages 4, pages 4",
		`{"engine":{"name":"ClamAV","signatures":27000}}`: "engine (name ClamAV, signatures 27000)", `{"a":[1,"b"],"c":true,"d":null}`: "a 1 b, c true",
	} {
		if got := (Gate{Detail: []byte(detail)}).DetailText(); got != want {
			t.Errorf("%s: %q, want %q", detail, got, want)
		}
	}
}
