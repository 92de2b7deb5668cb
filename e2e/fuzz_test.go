package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// How many requests a run makes, and from which seed. ACCESSION_FUZZ_SEED and ACCESSION_FUZZ_REQUESTS change them;
// ACCESSION_FUZZ_ONLY=i repeats the i-th request of a seed alone.
const (
	fuzzSeed     = 20261120
	fuzzRequests = 5500
	fuzzWorkers  = 6
)

// Whatever is asked, the answer is one that the served document describes; nothing the client sent comes back in a refusal; and
// what the document refuses does not succeed.
func TestFuzzedContract(t *testing.T) {
	t.Parallel()
	g := newGrounds(t)
	seed, count := number(t, "ACCESSION_FUZZ_SEED", fuzzSeed), number(t, "ACCESSION_FUZZ_REQUESTS", fuzzRequests)
	t.Logf("ACCESSION_FUZZ_SEED=%d ACCESSION_FUZZ_REQUESTS=%d", seed, count)
	first, last := uint64(0), count
	if os.Getenv("ACCESSION_FUZZ_ONLY") != "" {
		first = number(t, "ACCESSION_FUZZ_ONLY", 0)
		last = first + 1
	}
	var table []operation // those with a body stand in it more often: there is more to get wrong
	for _, op := range g.document.operations {
		table = append(table, op)
		if mediaType, _ := op.body(); mediaType != "" {
			table = append(table, op, op)
		}
	}
	web := &http.Client{
		Timeout:       2 * faultPatience, // whoever waits longer hangs
		Transport:     &http.Transport{MaxIdleConnsPerHost: fuzzWorkers, ExpectContinueTimeout: faultPatience, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(web.CloseIdleConnections)

	var (
		next     atomic.Uint64
		mu       sync.Mutex
		answered int
		statuses = map[string]map[int]int{} // by operation
		all      sync.WaitGroup
	)
	next.Store(first)
	for range fuzzWorkers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < last; i = next.Add(1) - 1 {
				if t.Failed() && first+1 < last { // one finding is enough for a run
					return
				}
				f := &fuzzer{Rand: rand.New(rand.NewPCG(seed, i)), mark: fmt.Sprintf("zqfuzz%dzq", i)}
				r := g.request(f, pick(f, table), fmt.Sprintf("fuzz-key-%d-%d", seed, i))
				status, err := g.ask(t.Context(), web, r)
				if err != nil {
					t.Errorf("repeat with ACCESSION_FUZZ_SEED=%d ACCESSION_FUZZ_ONLY=%d\n%s\n%v", seed, i, r, err)
					continue
				}
				mu.Lock()
				answered++
				if statuses[r.op.id] == nil {
					statuses[r.op.id] = map[int]int{}
				}
				statuses[r.op.id][status]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, id := range sorted(statuses) {
		t.Log(id, statuses[id])
	}
	g.wantSoundLog(t)
	if t.Failed() || count != fuzzRequests {
		return
	}
	if answered < 5000 {
		t.Errorf("%d answers, at least 5000 are promised", answered)
	}
	for _, op := range g.document.operations {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(statuses[op.id])), func(status int) bool { return status < 300 }) {
			t.Errorf("%s never succeeded, so its answers were not tried: %v", op.id, statuses[op.id])
		}
	}
}

// ask sends r and tells what is wrong with the answer.
func (g *grounds) ask(ctx context.Context, web *http.Client, r fuzzed) (int, error) {
	req, err := r.http(ctx, g.url)
	if err != nil {
		return 0, err
	}
	resp, err := web.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if err := g.judge(ctx, r, resp, body); err != nil {
		return 0, fmt.Errorf("%w\n%d %v\n%.2000s", err, resp.StatusCode, resp.Header, body)
	}
	return resp.StatusCode, nil
}

// generalHeaders are those that any answer may have, besides those that its operation names.
var generalHeaders = []string{
	"Access-Control-Allow-Origin", "Allow", "Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "Pragma", "Preference-Applied", "X-Content-Type-Options",
}

func (g *grounds) judge(ctx context.Context, r fuzzed, resp *http.Response, body []byte) error {
	status := resp.StatusCode
	if status >= 500 && (r.op.id != "getReadiness" || status != 503) { // a busy machine may take longer over a check than it may
		return fmt.Errorf("a failure of the service")
	}
	if bytes.Contains(body, []byte("goroutine ")) || bytes.Contains(body, []byte(".go:")) {
		return fmt.Errorf("the answer shows a stack")
	}
	if status >= 400 {
		if bytes.Contains(body, []byte(r.mark)) || strings.Contains(fmt.Sprint(resp.Header), r.mark) {
			return fmt.Errorf("the refusal repeats what was sent")
		}
		for _, secret := range g.secrets {
			if bytes.Contains(body, []byte(secret)) {
				return fmt.Errorf("the refusal shows a credential")
			}
		}
	}
	for _, name := range []string{"X-Request-Id", "Traceparent"} {
		if resp.Header.Get(name) == "" {
			return fmt.Errorf("no %s", name)
		}
	}
	if r.strayed && (status == 404 || status == 405) {
		return g.judgeMiss(resp, body)
	}
	return judgeAnswer(ctx, r, resp, body)
}

// judgeMiss is for what no operation answers: the error object, and Allow where the method was wrong.
func (g *grounds) judgeMiss(resp *http.Response, body []byte) error {
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if err := g.document.Components.Schemas["Problem"].Value.VisitJSON(answer, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse()); err != nil {
		return err
	}
	if (resp.StatusCode == 405) != (resp.Header.Get("Allow") != "") {
		return fmt.Errorf("allow: %q", resp.Header.Get("Allow"))
	}
	return nil
}

// judgeAnswer holds the answer against its operation in the served document.
func judgeAnswer(ctx context.Context, r fuzzed, resp *http.Response, body []byte) error {
	described := r.op.Operation.Responses.Status(resp.StatusCode)
	if described == nil {
		return fmt.Errorf("the document does not know this status for %s", r.op.id)
	}
	for name := range resp.Header {
		documented := slices.ContainsFunc(sorted(described.Value.Headers), func(known string) bool { return strings.EqualFold(known, name) })
		if !documented && !slices.Contains(generalHeaders, name) {
			return fmt.Errorf("the document does not know the header %s", name)
		}
	}
	if len(described.Value.Content) == 0 && len(body) > 0 {
		return fmt.Errorf("the document knows no body here")
	}
	if c := resp.Header.Get("Content-Type"); len(body) > 0 && c != "application/json" && (c != "text/plain; charset=utf-8" || described.Value.Content["text/plain"] == nil) {
		return fmt.Errorf("content type %q", c)
	}
	if (resp.StatusCode == 429) && resp.Header.Get("Retry-After") == "" {
		return fmt.Errorf("no Retry-After")
	}
	asked, err := r.input(ctx)
	if err != nil {
		return err
	}
	answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: asked, Status: resp.StatusCode, Header: resp.Header, Options: asked.Options}
	answer.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(ctx, answer); err != nil {
		return err
	}
	if resp.StatusCode >= 300 || r.strayed {
		return nil
	}
	if openapi3filter.ValidateRequest(ctx, asked) == nil { // as it was sent
		return nil
	}
	if r.header.Get("Content-Type") != "application/octet-stream" {
		r.body = withoutNulls(r.body)
	}
	r.query = strings.Join(slices.DeleteFunc(strings.Split(r.query, "&"), func(pair string) bool { // nor of a parameter without a value
		_, value, _ := strings.Cut(pair, "=")
		return value == ""
	}), "&")
	if asked, err = r.input(ctx); err != nil {
		return err
	}
	if err := openapi3filter.ValidateRequest(ctx, asked); err != nil {
		return fmt.Errorf("it succeeded, though the document refuses the request: %w", err)
	}
	return nil
}

// withoutNulls is a JSON body without the properties that are null: the service takes a null for an optional property as one
// that was not sent, which the document does not say.
func withoutNulls(body []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var tree any
	if decoder.Decode(&tree) != nil {
		return body
	}
	var prune func(any)
	prune = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			maps.DeleteFunc(v, func(_ string, value any) bool { return value == nil })
			for _, value := range v {
				prune(value)
			}
		case []any:
			for _, value := range v {
				prune(value)
			}
		}
	}
	prune(tree)
	return encode(tree)
}

// wantSoundLog fails the test where the log tells of a panic, a credential, or anything from a request but its organization.
func (g *grounds) wantSoundLog(t *testing.T) {
	t.Helper()
	log := g.log.String()
	for _, secret := range g.secrets {
		if strings.Contains(log, secret) {
			t.Error("the log shows a credential")
		}
	}
	for line := range strings.Lines(log) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) != nil {
			if strings.Contains(line, "zqfuzz") || strings.Contains(line, "goroutine ") || strings.Contains(line, "panic") {
				t.Errorf("log: %s", line)
			}
			continue
		}
		delete(entry, "org_id")
		if rest := fmt.Sprint(entry); strings.Contains(rest, "zqfuzz") || strings.Contains(rest, "goroutine ") || strings.Contains(rest, "panic") {
			t.Errorf("log: %s", line)
		}
	}
}
