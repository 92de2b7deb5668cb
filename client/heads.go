package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// OrganizationHeads is where an organization's two chains end.
type OrganizationHeads struct {
	OrgID   string    `json:"org_id"` // empty: the installation itself
	Audit   ChainHead `json:"audit"`
	Records ChainHead `json:"records"`
}

// Of is the head of one chain.
func (h OrganizationHeads) Of(chain string) ChainHead {
	if chain == ChainRecords {
		return h.Records
	}
	return h.Audit
}

// Heads are the heads of all chains at one time, to be kept outside of the service: whoever rewrites a chain later cannot make
// it pass through them.
type Heads struct {
	At    time.Time // no head is older
	Heads []OrganizationHeads
}

const (
	headsFormat   = "accession heads 1"
	maxHeadsBytes = 256 << 20 // about a million organizations
)

type headsFile struct {
	Format string              `json:"format"`
	At     string              `json:"at"`
	Heads  []OrganizationHeads `json:"heads"`
}

// Encode is the canonical form, whose digest may be published in place of it: one line of JSON without spaces, organizations in
// ascending order of the bytes of their ids, At in UTC with milliseconds.
func (h Heads) Encode() ([]byte, error) {
	sorted := slices.Clone(h.Heads)
	slices.SortFunc(sorted, func(a, b OrganizationHeads) int { return strings.Compare(a.OrgID, b.OrgID) })
	if sorted == nil {
		sorted = []OrganizationHeads{}
	}
	b, err := json.Marshal(headsFile{headsFormat, h.At.UTC().Format("2006-01-02T15:04:05.000Z"), sorted})
	return append(b, '\n'), err
}

// ReadHeads reads what Encode wrote, up to 256 MiB. An error where it is anything else.
func ReadHeads(r io.Reader) (*Heads, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxHeadsBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	var file headsFile
	if len(content) > maxHeadsBytes || json.Unmarshal(content, &file) != nil || file.Format != headsFormat {
		return nil, errors.New("not a file of exported heads")
	}
	at, err := time.Parse(time.RFC3339, file.At)
	if err != nil {
		return nil, errors.New("the exported heads have no time")
	}
	for _, h := range file.Heads {
		for _, head := range []ChainHead{h.Audit, h.Records} {
			if head.Position < 0 || len(head.Hash) != len(FirstHash) || strings.Trim(head.Hash, "0123456789abcdef") != "" || (head.Position == 0) != (head.Hash == FirstHash) {
				return nil, fmt.Errorf("the exported heads of organization %q are no heads", h.OrgID)
			}
		}
	}
	return &Heads{at, file.Heads}, nil
}
