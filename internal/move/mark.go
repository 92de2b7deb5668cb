package move

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/accession/accession/internal/crashpoint"
)

// markFile is the name of a mark in the data folder that was moved.
const markFile = "moved.json"

// State of a move.
type State string

// The states of a move, in their order. Without a mark nothing was begun.
const (
	Moving    State = "moving"    // copying; nobody may serve
	Moved     State = "moved"     // the target is complete; the source is still there
	Finishing State = "finishing" // the source is being destroyed
	Finished  State = "finished"  // nothing of it is left
)

// Mark says in a data folder that its installation was moved, so that it is never served from both places.
type Mark struct {
	Format  int       `json:"format"` // 1
	State   State     `json:"state"`
	At      time.Time `json:"at"`
	From    Places    `json:"from"` // what must not be used any more
	To      Places    `json:"to"`   // without passwords
	Keys    []Table   `json:"keys,omitempty"`
	Tables  []Table   `json:"tables,omitempty"`
	Staging Copied    `json:"staging,omitzero"`
	Copies  Copied    `json:"quarantine,omitzero"`
}

// Places are stores; empty ones are not part of the move.
type Places struct {
	Database     string `json:"database,omitempty"`
	KeysDatabase string `json:"keys_database,omitempty"`
	Blobs        string `json:"blobs,omitempty"`
	Quarantine   string `json:"quarantine,omitempty"`
}

// ReadMark reads the mark of a data folder; nil where there is none.
func ReadMark(data string) (*Mark, error) {
	text, err := os.ReadFile(filepath.Join(data, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := &Mark{}
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	if err == nil && m.Format != 1 {
		err = errors.New(markFile + " is not of format 1")
	}
	return m, err
}

// Write makes the mark durable in a data folder.
func (m *Mark) Write(data string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(data, markFile)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	crashpoint.Hit("move: before mark")
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = syncFolder(data)
	}
	crashpoint.Hit("move: after mark")
	return err
}

// Unmark removes the mark of a data folder, for a move that is given up.
func Unmark(data string) error {
	return errors.Join(os.Remove(filepath.Join(data, markFile)), syncFolder(data))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
