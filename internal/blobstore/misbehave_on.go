//go:build misbehaving

package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// MisbehaveEnvironment names the variable with a folder that says which calls go wrong, by upload. The file ID in it holds
// "STORE CALL N FAULT" (the N-th call of that kind about that upload, from 1) or "STORE CALL N+ FAULT" (that one and all later ones
// of any kind, as long as the file is there). Every call is written to ID.calls: "STORE CALL N", and the fault where one happened.
//
//	error    every call       it does nothing and fails
//	doubt    commit, delete   it does its work and fails
//	full     create, write    there is no space
//	vanish   commit           it succeeds, and the object is not there
//	pretend  delete           it succeeds, and the object is still there
//	missing  open             the object is said not to be there
//	flip     read             one bit differs
//	short    read             the object seems to end early
//	omit     list             the first object is left out
const MisbehaveEnvironment = "ACCESSION_STORE_FAULTS"

var errMisbehaved = errors.New("injected fault")

var script = struct {
	sync.Mutex
	folder  string
	calls   map[string]int  // by upload, store and call
	lasting map[string]bool // uploads whose plan has begun to last
}{folder: os.Getenv(MisbehaveEnvironment), calls: map[string]int{}, lasting: map[string]bool{}}

var faultsOf = map[string]string{
	"create": "error full", "write": "error full", "commit": "error doubt vanish", "delete": "error doubt pretend",
	"open": "error missing", "read": "error flip short", "list": "error omit",
}

// Misbehave has s fail and lie as the script says; without a script it returns s.
func Misbehave(s Store) Store {
	if script.folder == "" {
		return s
	}
	return misbehaving{s}
}

type misbehaving struct{ Store }

// fault counts a call and tells what is to go wrong with it, if anything.
func (m misbehaving) fault(call, key string) string {
	segments := strings.Split(key, "/")
	if len(segments) < 3 || segments[0] != "uploads" {
		return ""
	}
	id := segments[1]
	script.Lock()
	defer script.Unlock()
	kind, fault := m.Name()+" "+call, ""
	script.calls[id+" "+kind]++
	n := script.calls[id+" "+kind]
	if plan, err := os.ReadFile(filepath.Join(script.folder, id)); err == nil {
		words := append(strings.Fields(string(plan)), "", "", "", "")
		at, err := strconv.Atoi(strings.TrimSuffix(words[2], "+"))
		if err != nil || !strings.Contains(" "+faultsOf[words[1]]+" ", " "+words[3]+" ") {
			panic("the fault script says: " + string(plan)) // a test that goes wrong nowhere proves nothing
		}
		due := words[0]+" "+words[1] == kind && n == at
		script.lasting[id] = script.lasting[id] || due && strings.HasSuffix(words[2], "+")
		if (due || script.lasting[id]) && strings.Contains(" "+faultsOf[call]+" ", " "+words[3]+" ") {
			fault = words[3]
		}
	}
	calls, err := os.OpenFile(filepath.Join(script.folder, id+".calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(calls, "%s %d %s\n", kind, n, fault)
		err = errors.Join(err, calls.Close())
	}
	if err != nil {
		panic(err)
	}
	return fault
}

func (m misbehaving) failing(fault string) error {
	switch fault {
	case "full":
		return fmt.Errorf("%s: %w", m.Name(), ErrNoSpace)
	case "missing":
		return fmt.Errorf("%s: %w", m.Name(), ErrNotFound)
	case "error":
		return fmt.Errorf("%s: %w", m.Name(), errMisbehaved)
	}
	return nil
}

func (m misbehaving) Create(ctx context.Context, key string, size int64) (Writer, error) {
	if err := m.failing(m.fault("create", key)); err != nil {
		return nil, err
	}
	w, err := m.Store.Create(ctx, key, size)
	if err != nil {
		return nil, err
	}
	return &misbehavingWriter{w, m, key}, nil
}

type misbehavingWriter struct {
	Writer
	m   misbehaving
	key string
}

func (w *misbehavingWriter) WriteBlock(p []byte) error {
	if err := w.m.failing(w.m.fault("write", w.key)); err != nil {
		return err
	}
	return w.Writer.WriteBlock(p)
}

func (w *misbehavingWriter) Commit() error {
	fault := w.m.fault("commit", w.key)
	if err := w.m.failing(fault); err != nil {
		return err
	}
	if fault == "vanish" {
		return w.Writer.Abort()
	}
	err := w.Writer.Commit()
	if err == nil && fault == "doubt" {
		err = fmt.Errorf("%s: %w", w.m.Name(), errMisbehaved)
	}
	return err
}

func (m misbehaving) Open(ctx context.Context, key string) (Object, error) {
	if err := m.failing(m.fault("open", key)); err != nil {
		return nil, err
	}
	o, err := m.Store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	return &misbehavingObject{o, m, key}, nil
}

type misbehavingObject struct {
	Object
	m   misbehaving
	key string
}

func (o *misbehavingObject) ReadAt(p []byte, off int64) (int, error) {
	fault := o.m.fault("read", o.key)
	if err := o.m.failing(fault); err != nil {
		return 0, err
	}
	n, err := o.Object.ReadAt(p, off)
	switch {
	case fault == "flip" && n > 0:
		p[n/2] ^= 1
	case fault == "short" && n > 0:
		return n / 2, io.EOF
	}
	return n, err
}

func (m misbehaving) Delete(ctx context.Context, key string) error {
	fault := m.fault("delete", key)
	if err := m.failing(fault); err != nil {
		return err
	}
	if fault == "pretend" {
		return nil
	}
	err := m.Store.Delete(ctx, key)
	if err == nil && fault == "doubt" {
		err = fmt.Errorf("%s: %w", m.Name(), errMisbehaved)
	}
	return err
}

func (m misbehaving) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		fault := m.fault("list", prefix)
		if err := m.failing(fault); err != nil {
			yield(Info{}, err)
			return
		}
		omit := fault == "omit"
		for info, err := range m.Store.List(ctx, prefix) {
			if omit && err == nil {
				omit = false
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}
