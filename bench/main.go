// Command bench measures uploads into the service beside named references, in turn, on the same machine: what it prints is the
// only source of figures in the documentation. `make bench` runs it, at the top of the repository, on Linux.
//
//	bare      the same bytes in the same parts into a bare net/http handler: SHA-256, buffered write, fsync per part
//	ceiling   the same without a hash and past the page cache, which is the disk's ceiling
//	tusd      tusd, and the same until sha256sum has read the file
//	large     the same as tusd, with a large upload
//	s3        the service on the S3 service of the tests, beside the multipart upload of that service by itself
//	complete  the complete of a large upload beside that of 8 MiB
//	crowd     8 uploads at once beside one, and their memory over the idle service
//
// `go run ./bench -rows bare,ceiling` prints these alone. tusd and the S3 service are built once, below .cache. Only the upload
// path is measured: nothing is completed that need not be, so no gate runs beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/accession/accession/bench/scratch"
	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
)

var rowNames = []string{"bare", "ceiling", "tusd", "large", "s3", "complete", "crowd"}

const (
	small = 8 << 20 // bytes of the upload whose complete is compared with the large one's
	many  = 8       // uploads of a crowd
)

// partSizes are those of the uploads, in bytes.
var partSizes = []int64{16 << 20, 64 << 20}

// bench is one run.
type bench struct {
	work, binary string
	rows         []string
	rounds       int
	size, large  int64 // bytes of an upload
	table        *table.Table
}

func main() {
	var err error
	if len(os.Args) == 4 && os.Args[1] == "bare" {
		err = serveBare(os.Args[2], os.Args[3])
	} else {
		err = measure()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure() (err error) {
	b := &bench{}
	rows := flag.String("rows", "all", "rows to measure, separated by commas: "+strings.Join(rowNames, ","))
	size := flag.Int64("size", 1024, "size of one upload in MiB")
	large := flag.Int64("large", 8192, "size of the large upload in MiB, at most 8192")
	dir := flag.String("dir", os.TempDir(), "where to write; its disk is what is measured")
	path := flag.String("table", "", "a file that the rows are added to as well")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each measurement")
	flag.Parse()
	if b.rounds < 1 || *size < 1 || *large < 1 {
		return errors.New("-rounds, -size and -large are at least 1")
	}
	b.size, b.large = *size<<20, *large<<20
	if b.rows, err = table.Choose("rows", *rows, rowNames); err != nil {
		return err
	}
	if b.table, err = table.Open(*path); err != nil {
		return err
	}
	return scratch.Run(*dir, "bench", b.need(), func(ctx context.Context, folder string) error {
		b.work = folder
		return b.run(ctx)
	})
}

func (b *bench) wants(row string) bool { return slices.Contains(b.rows, row) }

// need is how many bytes of disk are in use at once, at most: what is withdrawn is gone before the next is sent.
func (b *bench) need() int64 {
	most := 2 * b.size // the S3 service makes one file of the parts
	if b.wants("large") || b.wants("complete") {
		most = max(most, b.large)
	}
	if b.wants("crowd") {
		most = max(most, many*b.size)
	}
	return most + b.size + 1<<30 // the bare handler's last round; programs and databases
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.binary, err = server.Build(ctx, b.work); err != nil {
		return err
	}
	if err := b.disk(ctx); err != nil {
		return err
	}
	for _, row := range []struct {
		name    string
		measure func(context.Context) error
	}{{"s3", b.s3}, {"complete", b.completes}, {"crowd", b.crowd}} {
		if !b.wants(row.name) {
			continue
		}
		if err := row.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	return nil
}

// disk prints the rows of one upload beside the references on the same disk.
func (b *bench) disk(ctx context.Context) error {
	var references []reference
	if b.wants("bare") || b.wants("ceiling") {
		bare, err := startBare(ctx, b.work)
		if err != nil {
			return err
		}
		defer bare.stop()
		if b.wants("bare") {
			references = append(references, bare.reference("hash", comparison{"a bare handler: SHA-256, buffered write, fsync per part", "≥ 1.15"}))
		}
		if b.wants("ceiling") {
			references = append(references, bare.reference("direct", comparison{"the disk's ceiling: a bare handler, O_DIRECT, fsync per part", "≥ 0.65"}))
		}
	}
	var larger []reference
	if b.wants("tusd") || b.wants("large") {
		tusd, folder, err := startTusd(ctx, b.work)
		if err != nil {
			return err
		}
		defer tusd.stop()
		if b.wants("tusd") {
			references = append(references, tusd.tusReference(folder, "≥ 0.95"))
		}
		if b.wants("large") {
			larger = append(larger, tusd.tusReference(folder, "≥ 1.1"))
		}
	}
	for _, part := range partSizes {
		if len(references) > 0 {
			if err := b.service(ctx, part, nil, func(svc *process) error { return b.uploads(ctx, svc, "", references, b.size) }); err != nil {
				return err
			}
		}
	}
	if len(larger) == 0 {
		return nil
	}
	return b.service(ctx, slices.Max(partSizes), nil, func(svc *process) error { return b.uploads(ctx, svc, "", larger, b.large) })
}

// s3 prints the same rows where the service keeps its bytes in S3.
func (b *bench) s3(ctx context.Context) error {
	store, err := startS3(ctx, b.work)
	if err != nil {
		return err
	}
	defer store.stop()
	for _, part := range partSizes {
		if err := b.service(ctx, part, store, func(svc *process) error {
			return b.uploads(ctx, svc, " into S3", []reference{store.reference()}, b.size)
		}); err != nil {
			return err
		}
	}
	return nil
}
