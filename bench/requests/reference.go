package main

import (
	"bufio"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// reference is what a row is measured beside: a server with the same load, or a program that counts for itself.
type reference struct {
	process
	load    load
	commits bool
	out     *bufio.Reader
	in      io.Writer
}

// reference starts the one of a row, whose answers are as long as the service's.
func (b bench) reference(ctx context.Context, r row) (*reference, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	x := &reference{load: r.load, commits: r.reference == "commits"}
	arguments := []string{"reference", r.reference + ":" + strconv.Itoa(r.size)}
	if x.commits {
		folder := filepath.Join(b.work, "commits")
		if err := os.RemoveAll(folder); err != nil {
			return nil, err
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		arguments = []string{"commits", filepath.Join(folder, "commits.db"), strconv.Itoa(r.load.Clients)}
	}
	cmd := exec.CommandContext(ctx, self, arguments...)
	cmd.Stderr = os.Stderr
	if x.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	line, out, err := x.begin(cmd, "")
	if err != nil {
		return nil, err
	}
	x.out, x.load.Address = out, strings.TrimSpace(line)
	if r.reference == "not-modified" {
		x.load.Want = http.StatusNotModified
	}
	return x, nil
}

func (x *reference) measure(ctx context.Context, b bench, round time.Duration) (float64, error) {
	if !x.commits {
		return b.rate(ctx, x.load, round)
	}
	if _, err := fmt.Fprintln(x.in, int64(round)); err != nil {
		return 0, err
	}
	line, err := x.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// serveReference is a bare handler: kind and length of its answer in one word.
func serveReference(what string) error {
	kind, length, _ := strings.Cut(what, ":")
	size, err := strconv.Atoi(length)
	if err != nil {
		return err
	}
	answer := []byte(`{"data":"` + strings.Repeat("x", max(0, size-11)) + `"}`)
	var handler http.Handler
	switch kind {
	case "json":
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer) // nobody left to tell
		})
	case "not-modified":
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", r.Header.Get("If-None-Match"))
			w.WriteHeader(http.StatusNotModified)
		})
	case "signature":
		handler, err = signing()
	case "mcp":
		handler = constantTool(strings.Repeat("x", size/2)) // it is answered twice, as text and as structured content
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, handler)
}

// signing answers with one signature of the kind that access tokens have: RS256, 2,048 bits.
func signing() (http.Handler, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sum := sha256.Sum256(body)
		var signature []byte
		if err == nil {
			signature, err = rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"access_token": base64.RawURLEncoding.EncodeToString(signature)}) // nobody left to tell
	}), err
}

type toolInput struct {
	OrgID    string `json:"org_id"`
	UploadID string `json:"upload_id"`
}

type toolOutput struct {
	Text string `json:"text"`
}

// constantTool is the SDK's own stateless server with one tool that answers what it has.
func constantTool(text string) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "reference", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "get_ai_context"}, func(context.Context, *mcp.CallToolRequest, toolInput) (*mcp.CallToolResult, toolOutput, error) {
		return nil, toolOutput{text}, nil
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// serveCommits is the engine alone: as many writers as clients, each committing 2 KiB at a time, durably, under the pragmas of the
// service. It answers each duration on its input with commits a second.
func serveCommits(path, clients string) error {
	writers, err := strconv.Atoi(clients)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?"+url.Values{
		"_pragma": {"busy_timeout(60000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "recursive_triggers(1)"}, "_txlock": {"immediate"},
	}.Encode())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // one writer: more would wait for each other's lock, and longer
	if _, err := db.Exec(`CREATE TABLE texts (id TEXT PRIMARY KEY, content BLOB NOT NULL)`); err != nil {
		return err
	}
	fmt.Println("ready")
	asked := bufio.NewScanner(os.Stdin)
	content := make([]byte, textBytes)
	for asked.Scan() {
		round, err := strconv.ParseInt(asked.Text(), 10, 64)
		if err != nil {
			return err
		}
		done, errs := make([]int, writers), make([]error, writers)
		var writing sync.WaitGroup
		began := time.Now()
		for i := range writers {
			writing.Go(func() {
				for ; errs[i] == nil && time.Since(began) < time.Duration(round); done[i]++ {
					_, errs[i] = db.Exec(`INSERT INTO texts VALUES ($1, $2)`, rand.Text(), content)
				}
			})
		}
		writing.Wait()
		took, total := time.Since(began).Seconds(), 0
		for i := range writers {
			if total += done[i]; errs[i] != nil {
				return errs[i]
			}
		}
		fmt.Println(float64(total) / took)
	}
	return asked.Err()
}
