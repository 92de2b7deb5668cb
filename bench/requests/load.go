package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// load is what the generator sends: the same whatever the server. Clients take the requests in turn, each one its own.
type load struct {
	Address  string
	Requests []request
	Clients  int
	Want     int     // status of every answer
	Rate     float64 // of all clients together, a second; 0: each as fast as answers come
	Round    time.Duration
}

// request as the wire has it; KEY in a header becomes a random one each time.
type request struct {
	Head string // request line and headers, without Content-Length and the empty line
	Body string
}

// driven is what came of a load. A request counts once it is answered; latencies of a load with a rate begin when it was due.
type driven struct {
	Done     int
	Took     float64 // seconds
	P50, P99 float64 // seconds
}

const keyPlace = "KEY-OF-THE-REQUEST"

func get(path, token string, headers ...string) request {
	return request{Head: "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: " + token + "\r\n" + strings.Join(headers, "")}
}

func post(path, media, body string, headers ...string) request {
	return request{Head: "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " + media + "\r\n" + strings.Join(headers, ""), Body: body}
}

// drive runs the generator in a process of its own.
func (b bench) drive(ctx context.Context, l load, round time.Duration) (d driven, err error) {
	l.Round = round
	spec, err := json.Marshal(l)
	if err != nil {
		return d, err
	}
	self, err := os.Executable()
	if err != nil {
		return d, err
	}
	generator := exec.CommandContext(ctx, self, "load")
	generator.Stdin, generator.Stderr = bytes.NewReader(spec), os.Stderr
	out, err := generator.Output()
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(out, &d)
}

// rate is how many requests a second were answered.
func (b bench) rate(ctx context.Context, l load, round time.Duration) (float64, error) {
	d, err := b.drive(ctx, l, round)
	return float64(d.Done) / d.Took, err
}

func serveLoad(in io.Reader, out io.Writer) error {
	var l load
	if err := json.NewDecoder(in).Decode(&l); err != nil {
		return err
	}
	var sending sync.WaitGroup
	errs, waits := make([]error, l.Clients), make([][]time.Duration, l.Clients)
	began := time.Now()
	for i := range l.Clients {
		sending.Go(func() { waits[i], errs[i] = l.client(i, began) })
	}
	sending.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return err // the others' will be the same
		}
	}
	all := slices.Concat(waits...)
	if len(all) == 0 {
		return errors.New("nothing was answered")
	}
	slices.Sort(all)
	at := func(part float64) float64 { return all[min(len(all)-1, int(part*float64(len(all))))].Seconds() }
	return json.NewEncoder(out).Encode(driven{Done: len(all), Took: took.Seconds(), P50: at(0.5), P99: at(0.99)})
}

// client sends until the round is over, on one connection.
func (l load) client(i int, began time.Time) (waits []time.Duration, err error) {
	conn, err := net.Dial("tcp", l.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r := l.Requests[i%len(l.Requests)]
	answers := bufio.NewReader(conn)
	var pause time.Duration
	due := began
	if l.Rate > 0 {
		pause = time.Duration(float64(l.Clients) / l.Rate * float64(time.Second))
		due = due.Add(pause * time.Duration(i) / time.Duration(l.Clients)) // not all at once
	}
	length := ""
	if r.Body != "" {
		length = fmt.Sprintf("Content-Length: %d\r\n", len(r.Body))
	}
	for {
		if pause > 0 {
			time.Sleep(time.Until(due))
		}
		sent := time.Now()
		if sent.Sub(began) >= l.Round {
			return waits, nil
		}
		if pause > 0 {
			sent = due
			due = due.Add(pause)
		}
		if _, err := io.WriteString(conn, strings.Replace(r.Head, keyPlace, rand.Text(), 1)+length+"\r\n"+r.Body); err != nil {
			return nil, err
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode != l.Want {
			said, _ := io.ReadAll(answer.Body)
			return nil, fmt.Errorf("%s: %s", answer.Status, said)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return nil, err
		}
		waits = append(waits, time.Since(sent))
	}
}
