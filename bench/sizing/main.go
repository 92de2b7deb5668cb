// Command sizing prints what one service takes of a machine: memory when idle and per upload under way, processor time per GiB
// and per document. `go run ./bench/sizing`, on Linux. docs/operations.md, "Sizing", is made of it. Processor time is what the
// processes themselves account for, so a busy machine changes it little.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/accession/accession/bench/scratch"
	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/client"
)

const (
	organization = "sizing"
)

func main() {
	mib := flag.Int64("size", 1024, "size of the large upload in MiB")
	many := flag.Int("documents", 100, "small documents")
	uploads := flag.Int("uploads", 8, "uploads at once")
	dir := flag.String("dir", os.TempDir(), "where to write")
	flag.Parse()
	if err := scratch.Run(*dir, "sizing", 3**mib<<20+2<<30, func(ctx context.Context, folder string) error {
		return run(ctx, folder, *mib<<20, *many, *uploads)
	}); err != nil {
		fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, work string, size int64, many, uploads int) (err error) {
	binary, err := server.Build(ctx, work)
	if err != nil {
		return err
	}
	signatures, err := exec.CommandContext(ctx, "scripts/signatures.sh", filepath.Join(work, "signatures")).Output()
	if err != nil {
		return err
	}
	s, err := start(ctx, binary, filepath.Join(work, "data"), strings.TrimSpace(string(signatures)))
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Printf("signatures: %s\n", strings.TrimSpace(string(signatures)))
	note := []byte("The harbour was dredged in May. It is open to ships again.\n")
	if _, err := s.submit(ctx, "note.txt", "text/plain", strings.NewReader(string(note)), int64(len(note)), true); err != nil { // engines are warm, clamd is ready
		return err
	}
	idle, err := server.Memory(s.cmd.Process.Pid, "VmRSS")
	if err != nil {
		return err
	}
	clamd, err := server.Memory(s.clamd, "VmRSS")
	if err != nil {
		return err
	}
	fmt.Printf("idle: service %s, clamd %s\n", mega(idle), mega(clamd))

	before := s.spent()
	var sending sync.WaitGroup
	errs := make([]error, uploads)
	sending.Add(uploads)
	for i := range uploads {
		go func() {
			defer sending.Done()
			_, errs[i] = s.submit(ctx, "block.bin", "application/octet-stream", zeroFree{}, size/int64(uploads), false)
		}()
	}
	sent := make(chan struct{})
	go func() { sending.Wait(); close(sent) }()
	peak := idle
	for looking := true; looking; {
		select {
		case <-sent:
			looking = false
		case <-time.After(20 * time.Millisecond):
			now, err := server.Memory(s.cmd.Process.Pid, "VmRSS")
			if err != nil {
				return err
			}
			peak = max(peak, now)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	took := s.spent().less(before)
	fmt.Printf("%d uploads at once, %s together, parts of 16 MiB, not completed: service +%s at its highest, %s each; %.2f processor seconds per GiB\n",
		uploads, mega(size), mega(peak-idle), mega((peak-idle)/int64(uploads)), took.service*float64(1<<30)/float64(size))

	before = s.spent()
	if _, err := s.submit(ctx, "block.bin", "application/octet-stream", zeroFree{}, size, true); err != nil {
		return err
	}
	took = s.spent().less(before)
	fmt.Printf("one upload of %s, received and through integrity, quarantine and malware scan: per GiB service %.2f, clamd %.2f processor seconds\n",
		mega(size), took.service*float64(1<<30)/float64(size), took.clamd*float64(1<<30)/float64(size))

	before = s.spent()
	for range many {
		if status, err := s.submit(ctx, "note.txt", "text/plain", strings.NewReader(string(note)), int64(len(note)), true); err != nil || status.Status != "READY" {
			return errors.Join(fmt.Errorf("a note is %+v", status), err)
		}
	}
	took = s.spent().less(before)
	fmt.Printf("a text of %d bytes, initiate to READY: service with workers %.0f, clamd %.0f processor milliseconds\n", len(note), 1000*took.service/float64(many), 1000*took.clamd/float64(many))

	scan, err := os.ReadFile("testdata/scans/pump-station-record.pdf")
	if err != nil {
		return err
	}
	const pages = 4
	before = s.spent()
	if status, err := s.submit(ctx, "scan.pdf", "application/pdf", strings.NewReader(string(scan)), int64(len(scan)), true); err != nil || status.Status != "READY" {
		return errors.Join(fmt.Errorf("the scan is %+v", status), err)
	}
	took = s.spent().less(before)
	fmt.Printf("a scan of %d pages, initiate to READY: %.2f processor seconds a page\n", pages, (took.service+took.clamd)/pages)
	disk, err := s.disk()
	if err != nil {
		return err
	}
	fmt.Printf("metadata.db and keys.db after %d uploads: %s, %d bytes each\n", many+4+uploads, mega(disk), disk/int64(many+4+uploads))
	return nil
}

// zeroFree is content without end that no scanner can skip and no store can shrink.
type zeroFree struct{}

var block = func() []byte { b := make([]byte, 1<<20); rand.Read(b); return b }()

func (zeroFree) ReadAt(p []byte, off int64) (int, error) {
	for n := 0; n < len(p); {
		n += copy(p[n:], block[(off+int64(n))%int64(len(block)):])
	}
	return len(p), nil
}

// service is a running `accession serve` with a clamd of its own.
type service struct {
	cmd    *exec.Cmd
	clamd  int
	data   string
	client *client.Client
}

func start(ctx context.Context, binary, data, signatures string) (*service, error) {
	s := &service{data: data}
	admin := rand.Text() + rand.Text()
	s.cmd = exec.CommandContext(ctx, binary, "serve", "--data", data, "--listen", "127.0.0.1:0", "--rate-limits", "off", "--clamav-database", signatures)
	s.cmd.Env = append(os.Environ(), "ACCESSION_ADMIN_TOKEN="+admin)
	line, _, err := server.Start(s.cmd, data+".log")
	if err != nil {
		return nil, err
	}
	url := server.URL(line)
	manager, err := client.New(url, client.WithAdminToken(admin))
	if err != nil {
		return nil, err
	}
	key, err := manager.IssueCredential(ctx, client.IssueRequest{OrgID: organization, Role: client.RoleUpload})
	if err != nil {
		return nil, err
	}
	s.client, err = client.New(url, client.WithToken(key.Token))
	if err != nil {
		return nil, err
	}
	s.clamd, err = s.child("clamd")
	return s, err
}

func (s *service) stop() {
	server.Stop(s.cmd)
}

// child is the process of that name below the service.
func (s *service) child(name string) (int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		pid, rest, _ := strings.Cut(string(raw), " (")
		command, rest, _ := strings.Cut(rest, ") ")
		if fields := strings.Fields(rest); command == name && len(fields) > 1 && fields[1] == strconv.Itoa(s.cmd.Process.Pid) {
			return strconv.Atoi(pid)
		}
	}
	return 0, fmt.Errorf("no %s below the service", name)
}

// submit sends a document, and follows it to its last status if it is to be completed.
func (s *service) submit(ctx context.Context, name, media string, content io.ReaderAt, size int64, complete bool) (*client.UploadStatus, error) {
	request := client.InitiateRequest{Filename: name, ContentType: media, SizeBytes: size, Consent: client.Consent{
		Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.AgreementVersion,
		TextSHA256: client.TextSHA256([]byte(client.AgreementText)), ConsentingUserID: "sizing", ConsentingUserEmail: "sizing@example.org",
	}}
	if complete {
		done, err := (&client.Uploader{Client: s.client}).Upload(ctx, client.NewTransfer(organization, request), content)
		if err != nil {
			return nil, err
		}
		return s.client.Follow(ctx, organization, done.UploadID, client.Retry{}, nil)
	}
	reserved, err := s.client.InitiateUpload(ctx, organization, request)
	if err != nil {
		return nil, err
	}
	for n, at := 1, int64(0); at < size; n, at = n+1, at+reserved.PartSizeBytes {
		length := min(reserved.PartSizeBytes, size-at)
		if _, err := s.client.PutPart(ctx, organization, reserved.UploadID, client.Part{Number: n, SizeBytes: length, Body: io.NewSectionReader(content, at, length)}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// spent is processor time in seconds; the service's has its workers that ended.
type spent struct{ service, clamd float64 }

func (s spent) less(before spent) spent {
	return spent{s.service - before.service, s.clamd - before.clamd}
}

func (s *service) spent() spent {
	return spent{server.Processor(s.cmd.Process.Pid, 4), server.Processor(s.clamd, 2)}
}

// disk is the size of the databases in bytes.
func (s *service) disk() (total int64, err error) {
	for _, name := range []string{"metadata.db", "keys.db"} {
		info, err := os.Stat(filepath.Join(s.data, name))
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

func mega(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
