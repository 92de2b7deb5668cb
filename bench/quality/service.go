package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/scanner"
)

const organization = "quality"

// scanner starts a clamd that the service and its reference share, with the signatures that this machine has.
func (b *bench) scanner(ctx context.Context) (clamd *scanner.Managed, address string, err error) {
	choose := exec.CommandContext(ctx, "scripts/signatures.sh", filepath.Join(b.cache, "signatures"))
	var said strings.Builder
	choose.Stderr = &said
	folder, err := choose.Output()
	if err != nil {
		return nil, "", fmt.Errorf("signatures: %w: %s", err, said.String())
	}
	if strings.Contains(said.String(), "TEST SIGNATURES") {
		fmt.Printf("\nclamd has test signatures only: no full set is here. Its share of the time is smaller than it would be.\n")
	}
	if err := os.Chmod(b.work, 0o755); err != nil { // clamd gives up root's rights
		return nil, "", err
	}
	dir := filepath.Join(b.work, "clamd")
	clamd, err = scanner.StartManaged(ctx, scanner.ManagedConfig{
		Dir: dir, Database: strings.TrimSpace(string(folder)), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, "", err
	}
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := clamd.WaitReady(waiting); err != nil {
		return nil, "", errors.Join(err, clamd.Close())
	}
	return clamd, "unix:" + filepath.Join(dir, "clamd.sock"), nil
}

// service is a running `accession serve` in a folder of its own.
type service struct {
	cmd    *exec.Cmd
	data   string
	client *client.Client
}

func (b *bench) serve(ctx context.Context, clamd string) (*service, error) {
	s := &service{}
	var err error
	if s.data, err = os.MkdirTemp(b.work, "data-"); err != nil {
		return nil, err
	}
	admin := rand.Text() + rand.Text()
	s.cmd = exec.CommandContext(ctx, b.binary, "serve", "--data", s.data, "--listen", "127.0.0.1:0", "--rate-limits", "off",
		"--clamd-address", clamd, "--cache", filepath.Join(b.cache, "engines"))
	s.cmd.Env = append(os.Environ(), "ACCESSION_ADMIN_TOKEN="+admin)
	line, _, err := server.Start(s.cmd, filepath.Join(b.work, "service.log"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.data))
	}
	err = s.enter(ctx, server.URL(line), admin)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("accession serve: %w", err), s.stop())
	}
	return s, nil
}

func (s *service) enter(ctx context.Context, url, admin string) error {
	c, err := client.New(url, client.WithAdminToken(admin))
	if err != nil {
		return err
	}
	key, err := c.IssueCredential(ctx, client.IssueRequest{OrgID: organization, Role: client.RoleUpload})
	if err != nil {
		return err
	}
	s.client, err = client.New(url, client.WithToken(key.Token))
	return err
}

func (s *service) stop() error {
	server.Stop(s.cmd)
	return os.RemoveAll(s.data)
}

// processorTime is what a stopped service and its workers took.
func (s *service) processorTime() time.Duration {
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
}

// processorTime is what this process and those it waited for took until now.
func processorTime() (total time.Duration) {
	for _, of := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(of, &used) == nil { // it cannot fail with these
			total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return total
}

// cost is how long something took: on the clock, and of the processors, which a busy machine changes less.
type cost struct {
	clock, processor time.Duration
	peak             int64 // resident memory of the service in bytes, without workers; 0: not measured
}

// each is a round of the table: seconds, and processor seconds of each of n documents.
func (c cost) each(n int) table.Round {
	return table.Round{Value: c.clock.Seconds(), CPU: c.processor.Seconds() / float64(n)}
}

// submit sends a document and follows it to its last status.
func (s *service) submit(ctx context.Context, name, media string, content io.ReaderAt, size int64) (*client.UploadStatus, error) {
	transfer := client.NewTransfer(organization, client.InitiateRequest{
		Filename: name, ContentType: media, SizeBytes: size,
		Consent: client.Consent{
			Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.AgreementVersion,
			TextSHA256: client.TextSHA256([]byte(client.AgreementText)), ConsentingUserID: "quality", ConsentingUserEmail: "quality@example.org",
		},
	})
	done, err := (&client.Uploader{Client: s.client}).Upload(ctx, transfer, content)
	if err != nil {
		return nil, err
	}
	return s.client.Follow(ctx, organization, done.UploadID, client.Retry{}, nil)
}

// memory reads a figure of the service's own process, workers not included, in bytes: VmRSS now, VmHWM at its highest.
func (s *service) memory(name string) (int64, error) {
	return server.Memory(s.cmd.Process.Pid, name)
}

// forgetPeak makes VmHWM start again from what is resident now.
func (s *service) forgetPeak() error {
	return server.ForgetPeak(s.cmd.Process.Pid)
}
