package move

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/crashpoint"
)

const copiers = 4 // objects at once

// Copied is what became of the objects of one storage root.
type Copied struct {
	Objects int64    `json:"objects"`
	Bytes   int64    `json:"bytes"`
	Before  int64    `json:"before"`             // of them those that an earlier run had copied
	LeftOut []string `json:"left_out,omitempty"` // names that no object of a store has
}

// Objects copies every sealed object of from to to, as it is, and reads each copy back: it must have the SHA-256 of what the source
// holds. What an earlier run copied is compared likewise, and written again where it differs. note is told now and then how far it is.
func Objects(ctx context.Context, from, to blobstore.Store, note func(Copied)) (Copied, error) {
	var mu sync.Mutex
	var sum Copied
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiers)
	for info, err := range from.List(ctx, "") {
		if err != nil {
			if failed := group.Wait(); failed != nil { // which may have ended the listing
				err = failed
			}
			return sum, err
		}
		group.Go(func() error {
			before, err := object(ctx, from, to, info.Key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, blobstore.ErrKey):
				sum.LeftOut = append(sum.LeftOut, info.Key)
				return nil
			case err != nil:
				return fmt.Errorf("object %s: %w", info.Key, err)
			case before:
				sum.Before++
			}
			sum.Objects++
			sum.Bytes += info.Size
			if sum.Objects%1000 == 0 {
				note(sum)
			}
			return nil
		})
	}
	err := group.Wait()
	slices.Sort(sum.LeftOut)
	return sum, err
}

// object copies one, unless its copy is there.
func object(ctx context.Context, from, to blobstore.Store, key string) (before bool, err error) {
	source, err := from.Open(ctx, key)
	if err != nil {
		return false, err
	}
	defer source.Close()
	want, err := sumOf(ctx, source, nil)
	if err != nil {
		return false, err
	}
	switch same, err := holds(ctx, to, key, want); {
	case err != nil && !errors.Is(err, blobstore.ErrNotFound):
		return false, err
	case same:
		return true, nil
	case err == nil: // a death cut it short, or somebody changed it
		if err := to.Delete(ctx, key); err != nil {
			return false, err
		}
	}
	crashpoint.Hit("move: before object")
	w, err := to.Create(ctx, key, source.Size())
	if err != nil {
		return false, err
	}
	_, err = sumOf(ctx, source, w)
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		return false, errors.Join(err, w.Abort())
	}
	crashpoint.Hit("move: after object")
	same, err := holds(ctx, to, key, want)
	if err == nil && !same {
		err = ErrDiffers
	}
	return false, err
}

// holds tells whether the store has the object with exactly these bytes.
func holds(ctx context.Context, store blobstore.Store, key string, want []byte) (bool, error) {
	there, err := store.Open(ctx, key)
	if err != nil {
		return false, err
	}
	defer there.Close()
	got, err := sumOf(ctx, there, nil)
	return bytes.Equal(got, want), err
}

// sumOf is the SHA-256 of an object, which is also written to w where there is one.
func sumOf(ctx context.Context, o blobstore.Object, w blobstore.Writer) ([]byte, error) {
	sum, block := sha256.New(), make([]byte, blobstore.BlockSize)
	for at := int64(0); at < o.Size(); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := o.ReadAt(block[:min(int64(len(block)), o.Size()-at)], at)
		if err != nil && !(errors.Is(err, io.EOF) && at+int64(n) == o.Size()) {
			return nil, err
		}
		sum.Write(block[:n])
		if w != nil {
			if err := w.WriteBlock(block[:n]); err != nil {
				return nil, err
			}
		}
		at += int64(n)
	}
	return sum.Sum(nil), nil
}
