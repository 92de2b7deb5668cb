package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// single is a door with one turn, in a bubble. The first that comes to a room waits there until it is let go.
func single(t *testing.T) (turns *ratelimit.Turns, connect func() net.Conn, letGo func()) {
	turns = ratelimit.NewTurns(1)
	release := make(chan struct{})
	var come atomic.Bool
	wait := func() {
		if come.CompareAndSwap(false, true) {
			<-release
		}
	}
	b := &rooms{state: custody.UploadState{Upload: custody.Upload{ID: "up_1", OrgID: "org_1", Status: custody.StatusReceiving, Sequence: 3}}}
	b.work = func(context.Context) error { wait(); return nil }
	connect = standing(t, b, Config{Turns: turns, MCP: &messages{}}, func(*http.Server) {})
	return turns, connect, func() { close(release) }
}

// free tells whether there is a turn to be had at once.
func free(turns *ratelimit.Turns) bool {
	now, end := context.WithCancel(context.Background())
	end()
	ok := turns.Take(now, "", 0)
	if ok {
		turns.Give()
	}
	return ok
}

// asking writes a request of a credential, with a body or the beginning of one.
func asking(method, path, token, contentType string, length int, body string) string {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n", method, path, token)
	if length > 0 {
		head += fmt.Sprintf("Idempotency-Key: key-12345\r\nContent-Type: %s\r\nContent-Length: %d\r\n", contentType, length)
	}
	return head + "\r\n" + body
}

var statusAsked = asking("GET", oneUpload, uploaderToken, "", 0, "")

// Who waits for something else than processor and database waits without a turn.
func TestTurnsAreGivenBackBeforeWaiting(t *testing.T) {
	const text = "application/json"
	for name, request := range map[string]string{
		"for the rest of a JSON body":     asking("POST", partners+"/initiate", uploaderToken, text, 100, "{"),
		"for the rest of a part":          asking("PUT", oneUpload+"/parts/1", uploaderToken, "application/octet-stream", 100, "x"),
		"for the rest of a message":       asking("POST", "/mcp", uploaderToken, text, 100, "{"),
		"for the rest of a form":          asking("POST", "/oauth/token", uploaderToken, formType, 100, "g"),
		"for the rest of a credential":    asking("POST", "/portal/session", uploaderToken, text, 100, "{"),
		"for the rest of what is refused": asking("POST", partners+"/initiate", "nobody's", text, 100, "{"),
		"for a write":                     asking("POST", oneUpload+"/withdraw", uploaderToken, text, 2, "{}"),
		"for a record to be durable":      asking("GET", base+"/ai-context/up_1", readerToken, "", 0, ""),
		"for a reader who does not read":  asking("GET", "/api/v1/ai/openapi.json", uploaderToken, "", 0, ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns, connect, letGo := single(t)
				defer letGo()
				waits := connect()
				go func() { _, _ = io.WriteString(waits, request) }() // as much as is read
				synctest.Wait()
				if !free(turns) {
					t.Error("it holds its turn")
				}
			})
		})
	}
	t.Run("for a change", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			turns := ratelimit.NewTurns(1)
			asked := false
			b := &rooms{awaited: func(ctx context.Context) (custody.UploadState, error) {
				asked = true
				<-ctx.Done()
				return custody.UploadState{}, nil
			}}
			connect := standing(t, b, Config{Turns: turns}, func(*http.Server) {})
			waits := connect()
			go func() {
				_, _ = io.WriteString(waits, strings.Replace(statusAsked, "Host", "Prefer: wait=5\r\nHost", 1))
			}()
			synctest.Wait()
			if !free(turns) || !asked {
				t.Errorf("it holds its turn, or does not wait (%v)", !asked)
			}
		})
	})
}

// Where all turns are taken a request waits, before anybody is asked who it is; probes do not. Who goes away leaves the queue, and who
// has waited for half a minute is told to come again.
func TestRequestsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, connect, letGo := single(t)
		answered := func(request string) chan *http.Response {
			answers, c := make(chan *http.Response, 1), connect()
			go func() {
				res, err := exchanged(c, request)
				if err != nil {
					t.Error(err)
				}
				answers <- res
			}()
			synctest.Wait()
			return answers
		}
		waiting := func(want int) {
			t.Helper()
			synctest.Wait()
			if n, _ := turns.State(); n != want {
				t.Fatalf("%d wait, want %d", n, want)
			}
		}
		first := answered(statusAsked)
		waiting(0)
		second := answered(asking("GET", oneUpload, "nobody's", "", 0, ""))
		waiting(1)
		if res := <-answered("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); res.StatusCode != 200 {
			t.Errorf("a probe is answered %d", res.StatusCode)
		}
		leaves := connect()
		if _, err := io.WriteString(leaves, statusAsked); err != nil {
			t.Fatal(err)
		}
		waiting(2)
		leaves.Close()
		waiting(1)

		time.Sleep(30 * time.Second)
		if res := <-second; res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
			t.Errorf("who waited in vain is answered %d %v", res.StatusCode, res.Header)
		}
		third := answered(statusAsked)
		waiting(1)
		letGo()
		for _, answers := range []chan *http.Response{first, third} {
			if res := <-answers; res.StatusCode != 200 {
				t.Errorf("answered %d", res.StatusCode)
			}
		}
		if _, refused := turns.State(); refused != 2 {
			t.Errorf("%d waited in vain", refused)
		}
	})
}

// A request that nobody waits for any more ends without an answer, and without its turn.
func TestTurnOfWhoGoesAwayIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := ratelimit.NewTurns(1)
		begun := false
		b := &rooms{work: func(ctx context.Context) error {
			begun = true
			<-ctx.Done()
			return ctx.Err()
		}}
		c := standing(t, b, Config{Turns: turns}, func(*http.Server) {})()
		if _, err := io.WriteString(c, statusAsked); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.Close()
		synctest.Wait()
		if !free(turns) || !begun {
			t.Errorf("it kept its turn, or never had one (%v)", !begun)
		}
	})
}

// A request on a connection that has answered others, and one that fails on its way in, give their turns back too.
func TestEveryRequestGivesItsTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := ratelimit.NewTurns(1)
		connect := standing(t, &rooms{}, Config{Turns: turns}, func(*http.Server) {})
		for _, request := range []string{
			statusAsked, asking("GET", "/nothing", "x", "", 0, ""), asking("GET", "//double", "x", "", 0, ""), asking("DELETE", oneUpload, uploaderToken, "", 0, ""),
			asking("GET", oneUpload, "nobody's", "", 0, ""), asking("HEAD", oneUpload, uploaderToken, "", 0, ""), asking("GET", oneUpload+"?include_gates=perhaps", uploaderToken, "", 0, ""),
			asking("GET", oneUpload, uploaderToken+"\r\nX-Long: "+strings.Repeat("x", maxHeaderBytes), "", 0, ""),
			asking("POST", partners+"/initiate", uploaderToken, "application/json", 2, "{}"), asking("GET", "/api/v1/ai/openapi.json", "x", "", 0, ""),
		} {
			c := connect()
			r := bufio.NewReader(c)
			for range 2 {
				go func() { _, _ = io.WriteString(c, request) }() // where the connection ended, there is no answer
				method, _, _ := strings.Cut(request, " ")
				res, err := http.ReadResponse(r, &http.Request{Method: method})
				if err != nil {
					break
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode == 503 {
					t.Errorf("%.40q: %d, %v", request, res.StatusCode, err)
				}
			}
			synctest.Wait()
			if !free(turns) {
				t.Fatalf("%.40q kept its turn", request)
			}
		}
	})
}

// Some probes are answered at once; whoever floods with them waits for turns, as with anything else.
func TestProbesThatAreManyWaitForTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, release := ratelimit.NewTurns(1), make(chan struct{})
		hangs := Check{Name: "store", Readiness: readiness(func(context.Context) error { <-release; return nil })}
		connect := standing(t, &rooms{}, Config{Turns: turns}, func(*http.Server) {}, hangs)
		if !turns.Take(t.Context(), "", 0) {
			t.Fatal("there is no turn")
		}
		answers := make(chan *http.Response)
		asks := func(path string) {
			c := connect()
			go func() {
				res, err := exchanged(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
				if err != nil {
					t.Error(err)
				}
				answers <- res
			}()
			synctest.Wait()
		}
		for range mostProbes {
			asks("/readyz")
		}
		if waiting, _ := turns.State(); waiting != 0 {
			t.Errorf("%d probes wait", waiting)
		}
		asks("/healthz")
		if waiting, _ := turns.State(); waiting != 1 {
			t.Errorf("%d wait; one is too many", waiting)
		}
		turns.Give()
		if res := <-answers; res == nil || res.StatusCode != 200 {
			t.Errorf("it is answered %+v", res)
		}
		close(release)
		for range mostProbes {
			<-answers
		}
		asks("/healthz")
		if res := <-answers; res == nil || res.StatusCode != 200 || !free(turns) {
			t.Errorf("a place was not given back: %+v", res)
		}
	})
}
