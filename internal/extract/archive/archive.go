// Package archive opens one level of a container: zip, tar, gzip or bzip2. It hands out every member that any reader of the
// format would show, or refuses the container; it never leaves a member out.
//
// Containers in containers are the caller's to open, with the same Budget, inside visit. A container that two readers could
// understand in two ways (headers that disagree, members that the directory does not list, bytes behind the end, a file that is
// zip and tar at once) is ErrBroken: what was scanned must be what is opened later.
//
// It streams; memory does not grow with members, only with a zip's directory (at most 32 MiB of it is read).
//
// Source: contract decisions, gate 2 "malware" and gate 4 "extraction".
package archive

import (
	"errors"
	"fmt"
	"io"

	"github.com/accession/accession/internal/extract/page"
)

// Why a container is refused. Four of them are those of package page, so that a caller needs one table.
var (
	ErrTooDeep     = errors.New("containers lie deeper in each other than the limit allows")
	ErrTooMany     = errors.New("container has more members than the limit allows")
	ErrRatio       = errors.New("content expands out of all proportion to its size")
	ErrTooLarge    = page.ErrTooLarge    // a member, or all of them together, expands beyond the limit
	ErrEncrypted   = page.ErrEncrypted   // at least one member is encrypted
	ErrBroken      = page.ErrBroken      // damaged, or understood differently by different readers
	ErrUnsupported = page.ErrUnsupported // a compression or a variant that is not read
)

// Kind of a container.
type Kind string

// The kinds that Walk opens.
const (
	Zip   Kind = "zip"
	Tar   Kind = "tar"
	Gzip  Kind = "gzip"
	Bzip2 Kind = "bzip2"
)

// Member is one piece of content in a container.
type Member struct {
	Name string // see CleanName; for display only; empty when the container gives none
	Size int64  // expanded bytes as declared; -1 when not declared
	Type string // declared media type, lower case; empty when the container has no such thing
	Link bool   // content is the target of a symbolic link: some readers write it as a file, so scan it; it is no document
}

// Visitor receives one member. It need not read content to its end. content's errors are those of this package, or those of the
// container's ReadAt; a Visitor that ends with one should return it. Any error ends the walk.
type Visitor func(m Member, content io.Reader) error

// Walk opens one container and calls visit for every member that has content, in the order of its directory; directories and
// other entries without content are counted in b and not visited. It takes one level of b's depth while it runs, so a visit that
// opens a nested container calls Walk with the same b and nothing else. Every member is expanded to its end, also where visit
// reads less, and nil means that all of them were whole. A zip's declared sizes, counts and ratio are held against b before its
// first byte is expanded; what is really read is counted as well. Errors: those of this package, visit's, and content's.
func Walk(kind Kind, content io.ReaderAt, size int64, b *Budget, visit Visitor) error {
	if err := b.Enter(); err != nil {
		return err
	}
	defer b.Leave()
	src := NewSource(content, size)
	var err error
	switch kind {
	case Zip:
		err = walkZip(src, b, visit)
	case Tar:
		err = walkTar(src, b, visit)
	case Gzip:
		err = walkGzip(src, b, visit)
	case Bzip2:
		err = walkBzip2(src, b, visit)
	default:
		return fmt.Errorf("%w: container kind %q", ErrUnsupported, kind)
	}
	if failed := src.Err(); failed != nil && err != nil && !errors.Is(err, failed) {
		return errors.Join(failed, err)
	}
	return err
}

// broken says what is wrong with a container, without quoting it.
func broken(what string) error { return fmt.Errorf("%w: %s", ErrBroken, what) }
