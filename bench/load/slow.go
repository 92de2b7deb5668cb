package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// crept has slow senders and slow readers beside an ordinary client.
func (b *bench) crept(ctx context.Context, s *service, what string, slow, ordinary party) error {
	p := s.probe(ordinary)
	before, err := p.during(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	peak := s.watch()
	creeping, stop := context.WithTimeout(ctx, b.length)
	defer stop()
	var all sync.WaitGroup
	var held atomic.Int64 // rounds of slow clients that got as far as being slow
	tallies := make([]*tally, 2*b.slow)
	began := time.Now()
	for n := range tallies {
		who := slow
		who.Address = fmt.Sprintf("127.0.3.%d", n%100+1)
		v := &visitor{server: s.address(), party: who, tally: &tally{shed: map[int]int{}, wrong: map[string]int{}}, short: true}
		tallies[n] = v.tally
		creep := v.readNothing
		if n%2 == 0 {
			creep = v.trickle
		}
		all.Go(func() {
			defer v.leave()
			for creeping.Err() == nil {
				if creep(creeping) {
					held.Add(1)
				}
				pause(creeping, time.Second) // where it was refused, as asked for
			}
		})
	}
	all.Wait()
	ended := time.Now()
	memory, files := peak()
	beside := p.between(began.Add(time.Second), ended)
	again, recovered := p.recovered(ctx, ended, before)
	t := p.end()
	o := summed(tallies, ended.Sub(began))
	b.look(what+", slow clients", o)
	b.look(what+", slow clients, the ordinary client", outcome{Wrong: t.wrong})
	if refused := t.shed[429] + t.shed[503]; refused > 0 {
		b.blame("%s, slow clients: %d requests of another organization were refused", what, refused)
	}
	if !recovered {
		b.blame("%s, slow clients: the service did not recover in a minute", what)
	}
	b.row(fmt.Sprintf("%s, %d slow clients (%d times slow)", what, 2*b.slow, held.Load()), fmt.Sprintf("%.0f", float64(o.Sent)/o.Took), "", "",
		fmt.Sprint(o.Shed[429]), fmt.Sprint(o.Shed[503]), fmt.Sprint(sum(o.Wrong)), fmt.Sprintf("+%d MiB", (memory-s.idleMemory)>>20), fmt.Sprint(files), ratio(before, beside),
		fmt.Sprint(t.shed[429]+t.shed[503]), fmt.Sprintf("%.1f s", again.Seconds()))
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// trickle sends a part of the party's finished upload, a byte a second, until ctx ends or it is refused.
func (v *visitor) trickle(ctx context.Context) (slow bool) {
	if err := v.arrive(); err != nil {
		v.tally.wrong["no connection: "+plain(err)]++
		return false
	}
	defer v.leave()
	request := v.request("PUT", "/partner-uploads/"+v.party.Upload+"/parts/1", v.party.Token, "application/octet-stream", note)
	v.tally.sent++
	if _, err := io.WriteString(v.conn, strings.TrimSuffix(request, note)); err != nil {
		v.tally.wrong["no request: "+plain(err)]++
		return false
	}
	for n := 0; ctx.Err() == nil; n++ {
		_ = v.conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := v.r.Peek(1); err == nil {
			v.answered()
			return slow
		}
		if _, err := io.WriteString(v.conn, note[n:n+1]); err != nil {
			v.answered()
			return slow
		}
		slow = true
	}
	return slow
}

// answered counts an answer that came before the request was whole.
func (v *visitor) answered() {
	_ = v.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	res, err := http.ReadResponse(v.r, nil)
	if err != nil {
		v.tally.wrong["no answer to a body that trickles: "+plain(err)]++
		return
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body) // what there is of it
	switch status := res.StatusCode; {
	case (status == 429 || status == 503) && res.Header.Get("Retry-After") != "":
		v.tally.shed[status]++
	case status == http.StatusConflict, status == http.StatusRequestTimeout: // the upload takes no part any more, or the body took too long
	default:
		v.tally.wrong[fmt.Sprintf("%d %.60s", status, text)]++
	}
}

// readNothing asks for the largest answers there are, one behind the other, and reads none, until ctx ends or the connection does.
func (v *visitor) readNothing(ctx context.Context) (slow bool) {
	if err := v.arrive(); err != nil {
		v.tally.wrong["no connection: "+plain(err)]++
		return false
	}
	defer v.leave()
	const asks = 100 // more than the buffers of both sides take
	document := "GET /api/v1/ai/openapi.json HTTP/1.1\r\nHost: load\r\n\r\n"
	if _, err := io.WriteString(v.conn, strings.Repeat(document, asks)); err != nil {
		return false
	}
	v.tally.sent += asks
	for slow = true; ctx.Err() == nil; pause(ctx, time.Second) {
		if _, err := io.WriteString(v.conn, "\r\n"); err != nil { // it has been cut off
			break
		}
	}
	return slow
}
