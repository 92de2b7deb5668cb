package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A refusal does not wait for a body that does not come, nor does any other answer: the deadline of a body is far beyond that of
// this test.
func TestAnswersDoNotWaitForBodies(t *testing.T) {
	b := newBench(t, func(c *Config) { c.PartIdleTimeout, c.BodyTimeout = time.Hour, time.Hour })
	stranger := func(request string) string { return strings.Replace(request, uploaderToken, "acc_x", 1) }
	part := func(body string, length int) string {
		return rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", body, length)
	}
	for name, c := range map[string]struct {
		request string
		status  int
		close   bool
	}{
		"no byte of a part":    {stranger(part("", 9)), 401, true},
		"half a part":          {stranger(part("half", 9)), 401, true},
		"a large part":         {stranger(part("half", 9<<20)), 401, true},
		"chunks":               {strings.Replace(stranger(part("", 9)), "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n", 1) + "5\r\nhe", 401, true},
		"wrong media type":     {strings.Replace(part("", 9), "octet-stream", "pdf", 1), 415, true},
		"no such route":        {rawRequest("POST", "/nowhere", "application/json", "", 9), 404, true},
		"a read":               {rawRequest("GET", "/healthz", "application/json", "", 9), 200, true},
		"waits to be asked":    {strings.Replace(stranger(part("", 9)), "Host: x\r\n", "Host: x\r\nExpect: 100-continue\r\n", 1), 401, true},
		"all of it is there":   {stranger(part("all of it", 9)), 401, false},
		"JSON that is refused": {stranger(rawRequest("POST", partners+"/complete", "application/json", completeJSON, len(completeJSON))), 401, false},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			res, err := b.exchangeRaw(c.request, false)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != c.status || res.Close != c.close {
				t.Errorf("answered %d, close %v; want %d, %v", res.StatusCode, res.Close, c.status, c.close)
			}
		})
	}
	// The connection of a refused body that was there serves the next request.
	b.t = t
	refused := stranger(part("all of it", 9))
	next := "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	var got []int
	for _, a := range b.answers(refused + next) {
		got = append(got, a.StatusCode)
	}
	if fmt.Sprint(got) != fmt.Sprint([]int{http.StatusUnauthorized, http.StatusOK}) {
		t.Errorf("answers %v", got)
	}
}
