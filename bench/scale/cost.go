package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/minio/minio-go/v7"
)

// cost prints what each operation costs on PostgreSQL and S3: one replica, one client, one operation after the other.
func (b bench) cost(ctx context.Context, db *postgres) error {
	store, err := startS3(ctx, b.work)
	if err != nil {
		return err
	}
	defer server.Stop(store.Cmd)
	address, err := db.database(ctx)
	if err != nil {
		return err
	}
	w, err := newWire(db.address)
	if err != nil {
		return err
	}
	x := b.site("cost", strings.Replace(address, db.address, w.address, 1))
	x.env = store.Env(store.proxy)
	s, err := x.start(ctx, "a")
	if err != nil {
		return err
	}
	defer s.stop()
	all, err := s.clients(ctx, 1)
	if err != nil {
		return err
	}
	c := caller{all[0].org, all[0].on(s)}
	reader, err := c.reader(ctx, s)
	if err != nil {
		return err
	}
	ids := make([]string, b.repeats)
	before, err := db.size(ctx, address)
	if err != nil {
		return err
	}
	measure := func() (m measured, err error) {
		m.db, err = db.counted(ctx)
		m.service, m.trips, m.bytes, m.requests, m.stored = family(s.cmd.Process.Pid), w.trips.Load(), w.bits.Load(), store.requests.Load(), store.bytes.Load()
		return m, err
	}
	// What is done with nobody asking belongs to no operation.
	from, err := measure()
	if err != nil {
		return err
	}
	const quiet = 10 * time.Second
	time.Sleep(quiet)
	to, err := measure()
	if err != nil {
		return err
	}
	took := quiet.Seconds() + 1.5
	idle := to.less(from)
	fmt.Printf("one replica, idle, a second: %.1f statements, %.1f round trips, %.0f bytes to PostgreSQL; %.1f requests to S3; %.1f processor milliseconds of the service, %.1f of PostgreSQL\n\n",
		float64(idle.db.statements)/took, float64(idle.trips)/took, float64(idle.bytes)/took, float64(idle.requests)/took, 1000*idle.service/took, 1000*idle.db.seconds/took)
	fmt.Printf("cost per operation, %d of each, idle taken off; text of %d bytes\n%-12s %10s %10s %10s %8s %8s %8s %8s %8s %8s %8s\n", b.repeats, len(note), "",
		"service ms", "postgres ms", "statements", "commits", "trips", "bytes", "rows", "WAL", "S3 reqs", "S3 bytes")
	var whole total
	for _, o := range []struct {
		name string
		do   func(n int) error
	}{
		{"initiate", func(n int) (err error) { ids[n], err = c.initiate(ctx); return err }},
		{"part", func(n int) error { return c.part(ctx, ids[n]) }},
		{"gates", func(n int) error { return errors.Join(c.complete(ctx, ids[n]), c.ready(ctx, ids[n])) }},
		{"status", func(n int) error { return c.look(ctx, ids[n]) }},
		{"context", func(n int) error { return reader.read(ctx, ids[n]) }},
		{"withdraw", func(n int) error { return c.withdraw(ctx, ids[n]) }},
	} {
		if o.name == "withdraw" {
			objects, err := store.objects(ctx)
			if err != nil {
				return err
			}
			after, err := db.size(ctx, address)
			if err != nil {
				return err
			}
			whole.objects, whole.kept = float64(objects)/float64(b.repeats+1), float64(after-before)/float64(b.repeats)
		}
		from, err := measure()
		if err != nil {
			return err
		}
		began := time.Now()
		for n := range ids {
			if err := o.do(n); err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
		}
		to, err := measure()
		if err != nil {
			return err
		}
		whole.add(to.less(from).print(o.name, b.repeats, idle, time.Since(began).Seconds()/took))
	}
	b.project(whole)
	return nil
}

// measured is everything that is counted.
type measured struct {
	db                             counted
	service                        float64
	trips, bytes, requests, stored int64
}

func (m measured) less(before measured) measured {
	return measured{m.db.less(before.db), m.service - before.service, m.trips - before.trips, m.bytes - before.bytes, m.requests - before.requests, m.stored - before.stored}
}

// each is one operation's share of what was measured.
type each struct {
	service, postgres                                            float64 // processor seconds
	statements, commits, trips, bytes, rows, wal, requests, sent float64
}

// print one operation's share, less what the service would have done anyway in as many times idle.
func (m measured) print(name string, n int, idle measured, times float64) each {
	share := func(all, idle float64) float64 { return max(0, all-idle*times) / float64(n) }
	count := func(all, idle int64) float64 { return share(float64(all), float64(idle)) }
	e := each{share(m.service, idle.service), share(m.db.seconds, idle.db.seconds), count(m.db.statements, idle.db.statements), count(m.db.commits, idle.db.commits),
		count(m.trips, idle.trips), count(m.bytes, idle.bytes), count(m.db.rows, idle.db.rows), count(m.db.wal, idle.db.wal), count(m.requests, idle.requests), count(m.stored, idle.stored)}
	fmt.Printf("%-12s %10.2f %10.2f %10.1f %8.1f %8.1f %8.0f %8.1f %8.0f %8.1f %8.0f\n", name, 1000*e.service, 1000*e.postgres, e.statements, e.commits, e.trips, e.bytes, e.rows, e.wal, e.requests, e.sent)
	return e
}

// storage is the S3 service behind a proxy that counts requests.
type storage struct {
	*server.S3
	proxy           string // HOST:PORT
	requests, bytes atomic.Int64
}

func startS3(ctx context.Context, work string) (*storage, error) {
	s, err := server.StartS3(ctx, filepath.Join(work, "s3"))
	if err != nil {
		return nil, err
	}
	counting, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	x, target := &storage{S3: s, proxy: counting.Addr().String()}, &url.URL{Scheme: "http", Host: s.Address}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
		x.requests.Add(1)
		x.bytes.Add(max(0, r.In.ContentLength))
	}}
	go func() { _ = http.Serve(counting, proxy) }() // until the program ends
	return x, nil
}

// objects counts what is stored.
func (x *storage) objects(ctx context.Context) (n int, err error) {
	for _, bucket := range x.Buckets {
		for o := range x.Client.Client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Recursive: true}) {
			if o.Err != nil {
				return 0, o.Err
			}
			n++
		}
	}
	return n, nil
}
