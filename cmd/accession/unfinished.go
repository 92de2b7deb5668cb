package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/accession/accession/client"
)

// unfinished is the note of one upload that is not yet finished, in the user's state folder: one file of mode 0600 for each server,
// organization and file.
type unfinished struct {
	path string // empty: nowhere to keep it
	lock *os.File
}

// noted is what the file holds. It carries no credential.
type noted struct {
	Server   string           `json:"server"`
	File     string           `json:"file"`
	Modified time.Time        `json:"modified,omitzero"` // the file, when it was opened
	Transfer *client.Transfer `json:"transfer"`
}

var errNoStateFolder = errors.New("no state folder: set XDG_STATE_HOME or HOME")

// stateFolder follows the XDG base directory specification, which has relative paths ignored.
func (a *App) stateFolder() (string, error) {
	if folder := a.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "accession", "uploads"), nil
	}
	if home := a.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "accession", "uploads"), nil
	}
	return "", errNoStateFolder
}

// openUnfinished locks the note of this upload, so that two commands do not send the same file at once. Where there is nowhere to
// keep notes the error wraps errNoStateFolder.
func (a *App) openUnfinished(server, org, file string) (*unfinished, error) {
	folder, err := a.stateFolder()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoStateFolder, err)
	}
	sum := sha256.Sum256([]byte(server + "\x00" + org + "\x00" + file))
	u := &unfinished{path: filepath.Join(folder, hex.EncodeToString(sum[:16])+".json")}
	for {
		u.lock, err = os.OpenFile(u.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", errNoStateFolder, err)
		}
		if err := syscall.Flock(int(u.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			u.lock.Close()
			return nil, errors.New("another accession upload is sending this file to this organization right now")
		}
		// The holder before may have removed the file between our open and our lock.
		ours, err1 := u.lock.Stat()
		there, err2 := os.Stat(u.path + ".lock")
		if err1 == nil && err2 == nil && os.SameFile(ours, there) {
			return u, nil
		}
		u.lock.Close()
	}
}

// close lets another command have the note.
func (u *unfinished) close() {
	if u.lock != nil {
		os.Remove(u.lock.Name())
		u.lock.Close()
		u.lock = nil
	}
}

// read returns the note, or nil where there is none.
func (u *unfinished) read() (*noted, error) {
	if u.path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(u.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var note noted
	if err == nil {
		err = json.Unmarshal(content, &note)
	}
	if err == nil && note.Transfer == nil {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("the note of an unfinished upload cannot be read: %w", err)
	}
	return &note, nil
}

// write replaces the note whole and durably: a crash leaves the note before or this one.
func (u *unfinished) write(note noted) error {
	if u.path == "" {
		return nil
	}
	content, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	return writeWhole(u.path, content)
}

// forget removes the note: the upload is finished.
func (u *unfinished) forget() error {
	if u.path == "" {
		return nil
	}
	if err := os.Remove(u.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// forgetUnfinished removes the note of a file, unless another command is at work with it.
func (a *App) forgetUnfinished(server, org, file string) error {
	if file == "" {
		return nil
	}
	u, err := a.openUnfinished(server, org, file)
	if err != nil {
		return nil // nowhere to keep notes, or another command has taken over
	}
	defer u.close()
	return u.forget()
}

// notes are those of every unfinished upload of this user. What cannot be read is left out.
func (a *App) notes() (all []noted) {
	folder, err := a.stateFolder()
	if err != nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "*.json")) // the pattern is right
	for _, path := range paths {
		if note, err := (&unfinished{path: path}).read(); err == nil && note != nil {
			all = append(all, *note)
		}
	}
	return all
}
