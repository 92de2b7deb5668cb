package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// party is a credential with something to ask about. What it asks comes from an address of its own.
type party struct{ Org, Token, Reader, Upload, Address string }

// kinds are what is asked, each by the requests it is made of.
var kinds = []string{"status", "context", "upload", "text"}

// flood is what one process of clients is told to do.
type flood struct {
	Server      string // address
	Kind        string
	Parties     []party // connections are theirs in turn
	Connections int
	Rate        float64 // rounds a second, all connections together; 0: each asks again as soon as it is answered
	Time        time.Duration
}

// outcome is what became of it. Times are those of what was accepted, in milliseconds.
type outcome struct {
	Sent, Accepted int
	Shed           map[int]int    // 429 and 503, by status
	Wrong          map[string]int // everything else, and what is wrong with those; by what it is
	P50, P99       float64
	Took           float64 // seconds
}

func (o outcome) rate() float64 { return float64(o.Accepted) / o.Took }

// serveFlood does what standard input says, and writes the outcome.
func serveFlood() error {
	var f flood
	if err := json.NewDecoder(os.Stdin).Decode(&f); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f.run())
}

func (f flood) run() outcome {
	began := time.Now()
	tallies := make([]*tally, f.Connections)
	var working sync.WaitGroup
	for n := range f.Connections {
		v := &visitor{server: f.Server, party: f.Parties[n%len(f.Parties)], tally: &tally{shed: map[int]int{}, wrong: map[string]int{}}}
		tallies[n] = v.tally
		working.Go(func() {
			defer v.leave()
			var pace time.Duration
			if f.Rate > 0 {
				pace = time.Duration(float64(f.Connections) / f.Rate * float64(time.Second))
			}
			due := began.Add(pace * time.Duration(n) / time.Duration(f.Connections))
			for {
				time.Sleep(time.Until(due))
				if time.Since(began) > f.Time {
					return
				}
				v.round(f.Kind)
				// What could not be asked in time is not caught up with: the others ask at their own times.
				if due = due.Add(pace); time.Until(due) < 0 {
					due = time.Now()
				}
			}
		})
	}
	working.Wait()
	return summed(tallies, time.Since(began))
}

// tally counts for one connection.
type tally struct {
	sent  int
	took  []float32 // of what was accepted, milliseconds
	shed  map[int]int
	wrong map[string]int
}

func summed(tallies []*tally, took time.Duration) outcome {
	o := outcome{Shed: map[int]int{}, Wrong: map[string]int{}, Took: took.Seconds()}
	var times []float64
	for _, t := range tallies {
		o.Sent += t.sent
		for _, ms := range t.took {
			times = append(times, float64(ms))
		}
		for k, n := range t.shed {
			o.Shed[k] += n
		}
		for k, n := range t.wrong {
			o.Wrong[k] += n
		}
	}
	o.Accepted = len(times)
	slices.Sort(times)
	o.P50, o.P99 = quantile(times, 0.5), quantile(times, 0.99)
	return o
}

// quantile of what is sorted; 0 of nothing.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// visitor is one connection of a party, made anew whenever it ends.
type visitor struct {
	server string
	party  party
	tally  *tally
	conn   net.Conn
	r      *bufio.Reader
	short  bool // keep the receive buffer small
}

func (v *visitor) leave() {
	if v.conn != nil {
		v.conn.Close()
		v.conn = nil
	}
}

func (v *visitor) arrive() error {
	if v.conn != nil {
		return nil
	}
	d := net.Dialer{Timeout: 30 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(v.party.Address)}}
	conn, err := d.Dial("tcp", v.server)
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok && v.short {
		_ = tcp.SetReadBuffer(4 << 10) // the system's own would do, later
	}
	v.conn, v.r = conn, bufio.NewReader(conn)
	return nil
}

// round asks once for what kind says.
func (v *visitor) round(kind string) {
	switch kind {
	case "status":
		v.ask(v.request("GET", "/partner-uploads/"+v.party.Upload, v.party.Token, "", ""))
	case "context":
		v.ask(v.request("GET", "/ai-context/"+v.party.Upload, v.party.Reader, "", ""))
	case "upload":
		status, answer := v.ask(v.request("POST", "/partner-uploads/initiate", v.party.Token, "application/json", initiation))
		if status != http.StatusOK {
			return
		}
		var reserved struct {
			Data struct {
				UploadID string `json:"upload_id"`
			}
		}
		if err := json.Unmarshal(answer, &reserved); err != nil {
			v.tally.wrong["an answer that cannot be read"]++
			return
		}
		v.ask(v.request("PUT", "/partner-uploads/"+reserved.Data.UploadID+"/parts/1", v.party.Token, "application/octet-stream", note))
	case "text":
		v.ask(v.request("POST", "/customer-uploads", v.party.Token, "application/json", submission))
	}
}

func (v *visitor) request(method, path, token, contentType, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /api/v1/organizations/%s%s HTTP/1.1\r\nHost: load\r\nX-Api-Key: %s\r\n", method, v.party.Org, path, token)
	if method != http.MethodGet {
		fmt.Fprintf(&b, "Idempotency-Key: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n", rand.Text(), contentType, len(body))
	}
	return b.String() + "\r\n" + body
}

// ask sends a request, and counts its answer.
func (v *visitor) ask(request string) (status int, answer []byte) {
	if err := v.arrive(); err != nil {
		v.tally.wrong["no connection: "+plain(err)]++
		return 0, nil
	}
	began := time.Now()
	v.tally.sent++
	res, answer, err := v.exchange(request)
	if err != nil {
		v.leave()
		v.tally.wrong["no answer: "+plain(err)]++
		return 0, nil
	}
	took := time.Since(began)
	if res.Close {
		v.leave()
	}
	switch after, bad := strconv.Atoi(res.Header.Get("Retry-After")); {
	case res.StatusCode/100 == 2:
		v.tally.took = append(v.tally.took, float32(took.Seconds()*1000))
	case res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable:
		v.tally.wrong[fmt.Sprintf("%d %.60s", res.StatusCode, answer)]++
	case bad != nil || after < 1 || !json.Valid(answer):
		v.tally.wrong[fmt.Sprintf("%d without Retry-After or reason", res.StatusCode)]++
	default:
		v.tally.shed[res.StatusCode]++
	}
	return res.StatusCode, answer
}

func (v *visitor) exchange(request string) (*http.Response, []byte, error) {
	if err := v.conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return nil, nil, err
	}
	if _, err := io.WriteString(v.conn, request); err != nil {
		return nil, nil, err
	}
	res, err := http.ReadResponse(v.r, nil)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res, answer, err
}

// plain is the cause of an error, without the addresses.
func plain(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}
