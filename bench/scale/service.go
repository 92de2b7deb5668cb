package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/client"
)

// site is what the replicas of one installation share.
type site struct {
	binary, folder, url, keys, admin string
	env                              []string
}

func (b bench) site(name, url string) *site {
	folder := filepath.Join(b.work, name)
	return &site{binary: b.binary, folder: folder, url: url, keys: filepath.Join(folder, "key-encryption.key"), admin: strings.Repeat("scale-admin-token-", 3)}
}

// service is a running `accession serve` with a clamd of its own, on test signatures.
type service struct {
	cmd  *exec.Cmd
	data string
	url  string
	site *site
	once sync.Once
}

func (x *site) start(ctx context.Context, name string) (*service, error) {
	if err := os.MkdirAll(x.folder, 0o700); err != nil {
		return nil, err
	}
	signatures, err := filepath.Abs("testdata/clamav")
	if err != nil {
		return nil, err
	}
	address, err := server.FreeAddress() // the base URL is the same everywhere, so it has to be known
	if err != nil {
		return nil, err
	}
	s := &service{data: filepath.Join(x.folder, name), url: "http://" + address, site: x}
	s.cmd = exec.CommandContext(ctx, x.binary, "serve", "--data", s.data, "--listen", address, "--base-url", "http://custody.example", "--rate-limits", "off",
		"--clamav-database", signatures, "--keys", x.keys, "--blobs", filepath.Join(x.folder, "blobs"), "--quarantine", filepath.Join(x.folder, "quarantine"), "--quota-bytes", fmt.Sprint(int64(1)<<40))
	s.cmd.Env = append(append(os.Environ(), "ACCESSION_ADMIN_TOKEN="+x.admin), x.env...)
	if x.url != "" {
		s.cmd.Env = append(s.cmd.Env, "ACCESSION_DATABASE="+x.url)
	}
	if len(x.env) > 0 { // storage elsewhere
		s.cmd.Args = append(s.cmd.Args[:len(s.cmd.Args)-6], s.cmd.Args[len(s.cmd.Args)-2:]...)
	}
	if _, _, err := server.Start(s.cmd, s.data+".log"); err != nil {
		return nil, err
	}
	// Warm: clamd is ready and every engine has run once.
	c, err := s.clients(ctx, 1)
	if err == nil {
		_, err = job(ctx, caller{c[0].org, c[0].on(s)})
	}
	return s, err
}

func (s *service) stop() {
	s.once.Do(func() { server.Stop(s.cmd) })
}

// credential is one client's, of an organization of its own.
type credential struct{ org, token string }

var organizations atomic.Int64

func (s *service) clients(ctx context.Context, n int) (all []credential, err error) {
	manager, err := client.New(s.url, client.WithAdminToken(s.site.admin))
	if err != nil {
		return nil, err
	}
	for range n {
		org := fmt.Sprint("organization-", organizations.Add(1), "-", strings.ToLower(rand.Text()[:6]))
		key, err := manager.IssueCredential(ctx, client.IssueRequest{OrgID: org, Role: client.RoleUpload})
		if err != nil {
			return nil, err
		}
		all = append(all, credential{org, key.Token})
	}
	return all, nil
}

func (c credential) on(s *service) *client.Client {
	api, err := client.New(s.url, client.WithToken(c.token))
	if err != nil {
		panic(err) // the URL is this program's own
	}
	return api
}

// caller is a client at one replica.
type caller struct {
	org string
	api *client.Client
}

var note = []byte(strings.Repeat("The harbour was dredged in May. It is open to ships again. ", 70)) // 4 KiB

func initiation() client.InitiateRequest {
	return client.InitiateRequest{Filename: "note.txt", ContentType: "text/plain", SizeBytes: int64(len(note)), Consent: client.Consent{
		Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.AgreementVersion,
		TextSHA256: client.TextSHA256([]byte(client.AgreementText)), ConsentingUserID: "scale", ConsentingUserEmail: "scale@example.org",
	}}
}

func (c caller) initiate(ctx context.Context) (string, error) {
	r, err := c.api.InitiateUpload(ctx, c.org, initiation())
	if err != nil {
		return "", err
	}
	return r.UploadID, nil
}

func (c caller) part(ctx context.Context, id string) error {
	_, err := c.api.PutPart(ctx, c.org, id, client.Part{Number: 1, SizeBytes: int64(len(note)), Body: strings.NewReader(string(note))})
	return err
}

func (c caller) complete(ctx context.Context, id string) error {
	_, err := c.api.CompleteUpload(ctx, c.org, client.CompleteRequest{UploadID: id, Parts: []client.CompletePart{{PartNumber: 1}}, ClientFileSHA256: client.TextSHA256(note)})
	return err
}

func (c caller) ready(ctx context.Context, id string) error {
	st, err := c.api.Follow(ctx, c.org, id, client.Retry{}, nil)
	if err == nil && st.Status != client.StatusReady {
		err = fmt.Errorf("upload %s is %s", id, st.Status)
	}
	return err
}

// requests is the API without its jobs: reserve, send, look twice, quota.
func requests(ctx context.Context, c caller) (done int, err error) {
	id, err := c.initiate(ctx)
	if err == nil {
		err = c.part(ctx, id)
	}
	for range 2 {
		if err == nil {
			_, err = c.api.UploadStatus(ctx, c.org, id, client.StatusOptions{})
		}
	}
	if err == nil {
		_, err = c.api.Quota(ctx, c.org)
	}
	return 5, err
}

// job is one document from initiate to READY.
func job(ctx context.Context, c caller) (done int, err error) {
	id, err := c.initiate(ctx)
	if err == nil {
		err = c.part(ctx, id)
	}
	if err == nil {
		err = c.complete(ctx, id)
	}
	if err == nil {
		err = c.ready(ctx, id)
	}
	return 1, err
}

// drive has all clients do load for a round, each at the next replica every time, and returns how much was done a second.
func (b bench) drive(ctx context.Context, replicas []*service, clients []credential, load func(context.Context, caller) (int, error)) (float64, error) {
	var done atomic.Int64
	errs := make([]error, len(clients))
	var working sync.WaitGroup
	began := time.Now()
	for n, c := range clients {
		var at []caller
		for _, s := range replicas {
			at = append(at, caller{c.org, c.on(s)})
		}
		working.Go(func() {
			for turn := n; time.Since(began) < b.round && errs[n] == nil; turn++ {
				var did int
				did, errs[n] = load(ctx, at[turn%len(at)])
				done.Add(int64(did))
			}
		})
	}
	working.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

func (c caller) look(ctx context.Context, id string) error {
	_, err := c.api.UploadStatus(ctx, c.org, id, client.StatusOptions{})
	return err
}

func (c caller) withdraw(ctx context.Context, id string) error {
	_, err := c.api.WithdrawUpload(ctx, c.org, id, client.WithdrawRequest{Reason: "scale"})
	return err
}

// reader is a client of the same organization that may read contexts.
func (c caller) reader(ctx context.Context, s *service) (caller, error) {
	manager, err := client.New(s.url, client.WithAdminToken(s.site.admin))
	if err != nil {
		return c, err
	}
	key, err := manager.IssueCredential(ctx, client.IssueRequest{OrgID: c.org, Role: client.RoleAIReader})
	if err != nil {
		return c, err
	}
	return caller{c.org, credential{c.org, key.Token}.on(s)}, nil
}

func (c caller) read(ctx context.Context, id string) error {
	_, err := c.api.AIContext(ctx, c.org, id)
	return err
}
