package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/client"
)

// service is a running `accession serve` with a clamd of its own, on test signatures.
type service struct {
	cmd        *exec.Cmd
	url        string
	log        string
	ended      chan struct{}
	manager    *client.Client
	idleMemory int64
	idleFiles  int
}

// start runs a service until its engines are warm. cage is a folder of the control group to run it in; "" for none.
func (b *bench) start(ctx context.Context, name, cage string, flags ...string) (*service, error) {
	signatures, err := filepath.Abs("testdata/clamav")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(b.work, name)
	s := &service{log: data + ".log", ended: make(chan struct{})}
	admin := rand.Text() + rand.Text()
	command := append(b.serverSide, b.binary, "serve", "--data", data, "--listen", "127.0.0.1:0", "--clamav-database", signatures, "--quota-bytes", fmt.Sprint(int64(1)<<40))
	command = append(command, flags...)
	if cage != "" {
		command = append([]string{"sh", "-c", `echo $$ >"$0"/cgroup.procs && exec "$@"`, cage}, command...)
	}
	s.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	s.cmd.Env = append(os.Environ(), "ACCESSION_ADMIN_TOKEN="+admin)
	line, said, err := server.Start(s.cmd, s.log)
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(io.Discard, said)
		_ = s.cmd.Wait() // whoever asks looks at its state
		close(s.ended)
	}()
	s.url = server.URL(line)
	if s.manager, err = client.New(s.url, client.WithAdminToken(admin)); err != nil {
		return nil, err
	}
	_, err = s.party(ctx, "127.0.0.1") // every engine has run once
	s.idleMemory, s.idleFiles = s.memory(), s.files()
	return s, err
}

func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.ended
}

func (s *service) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *service) address() string { return strings.TrimPrefix(s.url, "http://") }

// party is a new organization with a document that is READY.
func (s *service) party(ctx context.Context, address string) (p party, err error) {
	p = party{Org: "load-" + strings.ToLower(rand.Text()[:8]), Address: address}
	for role, token := range map[string]*string{client.RoleUpload: &p.Token, client.RoleAIReader: &p.Reader} {
		key, err := s.manager.IssueCredential(ctx, client.IssueRequest{OrgID: p.Org, Role: role})
		if err != nil {
			return p, err
		}
		*token = key.Token
	}
	api, err := client.New(s.url, client.WithToken(p.Token))
	if err != nil {
		return p, err
	}
	done, err := (&client.Uploader{Client: api}).Upload(ctx, client.NewTransfer(p.Org, reservation()), strings.NewReader(note))
	if err != nil {
		return p, err
	}
	p.Upload = done.UploadID
	end, err := api.Follow(ctx, p.Org, p.Upload, client.Retry{}, nil)
	if err == nil && end.Status != client.StatusReady {
		err = fmt.Errorf("a note is %s", end.Status)
	}
	return p, err
}

// also is another uploader's credential of p's organization, at an address of its own.
func (s *service) also(ctx context.Context, p party, address string) (party, error) {
	key, err := s.manager.IssueCredential(ctx, client.IssueRequest{OrgID: p.Org, Role: client.RoleUpload})
	if err != nil {
		return p, err
	}
	p.Token, p.Address = key.Token, address
	return p, nil
}

// memory is the resident memory of the service itself in bytes, workers and clamd not included; 0 where it has ended.
func (s *service) memory() int64 {
	bytes, _ := server.Memory(s.cmd.Process.Pid, "VmRSS")
	return bytes
}

// files are the service's open file descriptors.
func (s *service) files() int {
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid)) // none where it has ended
	return len(open)
}

// watch samples memory and descriptors until peak is called, which returns the highest of each.
func (s *service) watch() (peak func() (memory int64, files int)) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	var memory int64
	var files int
	go func() {
		defer close(stopped)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			memory, files = max(memory, s.memory()), max(files, s.files())
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() (int64, int) {
		close(stop)
		<-stopped
		return memory, files
	}
}

var note = strings.Repeat("The harbour was dredged in May. It is open to ships again. ", 70) // 4 KiB

func consent() client.Consent {
	return client.Consent{Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.AgreementVersion,
		TextSHA256: client.TextSHA256([]byte(client.AgreementText)), ConsentingUserID: "load", ConsentingUserEmail: "load@example.org"}
}

func reservation() client.InitiateRequest {
	return client.InitiateRequest{Filename: "note.txt", ContentType: "text/plain", SizeBytes: int64(len(note)), Consent: consent()}
}

// The bodies of raw requests.
var (
	agreed     = fmt.Sprintf(`{"accepted":true,"beta_agreement_version":%q,"ai_readable_use_consent_version":%[1]q,"text_hash_sha256":%q,"consenting_user_id":"load","consenting_user_email":"load@example.org","accepted_at":%q}`, client.AgreementVersion, client.TextSHA256([]byte(client.AgreementText)), time.Now().UTC().Format(time.RFC3339))
	initiation = fmt.Sprintf(`{"filename":"note.txt","content_type":"text/plain","size_bytes":%d,"consent":%s}`, len(note), agreed)
	submission = fmt.Sprintf(`{"filename":"note.txt","payload":%q,"visibility":"ai_readable_controlled","consent":%s}`, note, agreed)
)

// memoryCage makes a control group with a memory limit in bytes, of the second version where the kernel offers one for memory, else
// of the first. killed tells how many processes in it the kernel has ended for want of memory.
func memoryCage(limit int64) (folder string, killed func() string, remove func() error, err error) {
	v2, v1 := "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
	controllers, _ := os.ReadFile(filepath.Join(v2, "cgroup.subtree_control")) // absent: the first version
	root, setting, events := v1, "memory.limit_in_bytes", "memory.oom_control"
	if strings.Contains(string(controllers), "memory") {
		root, setting, events = v2, "memory.max", "memory.events"
	}
	folder = filepath.Join(root, fmt.Sprint("accession-load-", os.Getpid()))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", nil, nil, fmt.Errorf("no control group can be made: %w", err)
	}
	err = os.WriteFile(filepath.Join(folder, setting), []byte(strconv.FormatInt(limit, 10)), 0)
	if root == v2 {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, "memory.swap.max"), []byte("0"), 0))
	}
	killed = func() string {
		raw, _ := os.ReadFile(filepath.Join(folder, events))
		_, rest, _ := strings.Cut(string(raw), "oom_kill ")
		n, _, _ := strings.Cut(rest, "\n")
		return cmp.Or(n, "?")
	}
	return folder, killed, func() error { return os.Remove(folder) }, err
}
