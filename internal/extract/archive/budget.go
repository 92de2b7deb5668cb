package archive

import (
	"cmp"
	"errors"
	"io"
	"math"
)

// Limits of one document and all that is in it, at any depth. One that is zero is that of DefaultLimits.
type Limits struct {
	Depth         int   // containers in each other, the outermost counted
	Members       int   // members of all containers together, directories too
	MemberBytes   int64 // expanded bytes of one member
	ExpandedBytes int64 // expanded bytes of all members together; a nested container's members count beside it
	Ratio         int64 // expanded bytes allowed for each byte of the document, beyond the first 16 MiB
}

const freeBytes = 16 << 20 // expanded bytes that need no proportion: a small page of zeros is no bomb

// DefaultLimits: a member fits one scan of clamd, whose ceiling is 2 GiB - 1; honest text reaches some 30:1, a bomb 1000:1.
func DefaultLimits() Limits {
	return Limits{Depth: 8, Members: 10_000, MemberBytes: 2047 << 20, ExpandedBytes: 8 << 30, Ratio: 200}
}

// Budget counts what one document takes of its Limits, through all its containers. Make one for each document and each purpose.
// It is for one goroutine.
type Budget struct {
	limits   Limits
	inRatio  int64 // expanded bytes that the ratio allows
	depth    int
	members  int
	expanded int64
}

// NewBudget makes a budget for a document of that many bytes.
func NewBudget(limits Limits, size int64) *Budget {
	std := DefaultLimits()
	limits = Limits{
		Depth: cmp.Or(limits.Depth, std.Depth), Members: cmp.Or(limits.Members, std.Members), Ratio: cmp.Or(limits.Ratio, std.Ratio),
		MemberBytes: cmp.Or(limits.MemberBytes, std.MemberBytes), ExpandedBytes: cmp.Or(limits.ExpandedBytes, std.ExpandedBytes),
	}
	b := &Budget{limits: limits, inRatio: math.MaxInt64}
	if size = max(size, 0); size < (math.MaxInt64-freeBytes)/limits.Ratio {
		b.inRatio = freeBytes + size*limits.Ratio
	}
	return b
}

// Members counted so far.
func (b *Budget) Members() int { return b.members }

// Expanded bytes counted so far.
func (b *Budget) Expanded() int64 { return b.expanded }

// Enter goes one container deeper, or is ErrTooDeep; then nothing is to be left. Walk does it by itself.
func (b *Budget) Enter() error {
	if b.depth >= b.limits.Depth {
		return ErrTooDeep
	}
	b.depth++
	return nil
}

// Leave comes back from one Enter.
func (b *Budget) Leave() { b.depth-- }

// Count takes one member, or is ErrTooMany.
func (b *Budget) Count() error {
	if b.members >= b.limits.Members {
		return ErrTooMany
	}
	b.members++
	return nil
}

// FitsMembers asks whether so many more members would fit; it takes nothing.
func (b *Budget) FitsMembers(n uint64) error {
	if n > uint64(b.limits.Members-b.members) {
		return ErrTooMany
	}
	return nil
}

// FitsMember asks whether one member of that many declared bytes would fit; it takes nothing. A negative size is not declared.
func (b *Budget) FitsMember(size int64) error {
	if err := b.Fits(size); err != nil {
		return err
	}
	if size > b.limits.MemberBytes {
		return ErrTooLarge
	}
	return nil
}

// Fits asks whether so many more expanded bytes would fit; it takes nothing.
func (b *Budget) Fits(n int64) error {
	if n > b.inRatio-b.expanded {
		return ErrRatio
	}
	if n > b.limits.ExpandedBytes-b.expanded {
		return ErrTooLarge
	}
	return nil
}

// Visit counts one member and hands it to visit, with content whose bytes are counted as they are read. What visit leaves is read
// to its end. It is for readers of other containers; Walk does it by itself.
func (b *Budget) Visit(m Member, content io.Reader, visit Visitor) error {
	if err := b.Count(); err != nil {
		return err
	}
	if err := b.FitsMember(m.Size); err != nil {
		return err
	}
	r := b.Reader(content)
	err := visit(m, r)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if r.err != nil && r.err != io.EOF && !errors.Is(err, r.err) {
		return errors.Join(r.err, err)
	}
	return err
}

// Reader reads one member's expanded bytes and counts them. It never hands out a byte beyond the budget.
func (b *Budget) Reader(content io.Reader) *Reader { return &Reader{content: content, budget: b} }

// Reader is one member's content, counted. Its error stays.
type Reader struct {
	content io.Reader
	budget  *Budget
	read    int64
	err     error
}

// Read is io.Reader. Besides content's own errors: ErrRatio, ErrTooLarge.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	b := r.budget
	room := min(b.limits.MemberBytes-r.read, b.limits.ExpandedBytes-b.expanded, b.inRatio-b.expanded)
	if room < int64(len(p)) {
		p = p[:max(room, 0)+1] // one byte more shows that there is one
	}
	n, err := r.content.Read(p)
	if int64(n) > room {
		if r.err = b.Fits(int64(n)); r.err == nil {
			r.err = ErrTooLarge
		}
		return 0, r.err
	}
	r.read += int64(n)
	b.expanded += int64(n)
	r.err = err
	return n, err
}
