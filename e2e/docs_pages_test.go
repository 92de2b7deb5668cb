package e2e

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/accession/accession/internal/storetest/cluster"
)

// inSections are the pages of which nobody does everything in one go: each section begins anew.
var inSections = map[string]bool{"operations.md": true, "upload.md": true, "api.md": true}

// notRun are the blocks that nothing runs, with the pages' own reasons.
var notRun = []string{
	"mcp.md: Claude Code is a program of others",
	"operations.md: needs a Kubernetes cluster; scripts/lint-deploy.sh looks at the chart",
	"upload.md: these are the reader's own; the examples below run with those of a test",
	"README.md: the second is what runs the test that follows this page, and .ci/run does both",
}

// prepared says what a reader has before a page or section, where that is more than a service and its credentials.
var prepared = map[string]func(*testing.T) *reader{
	"README.md":                       withClone,
	"quick-start.md":                  beginner,
	"command-line.md":                 withScan,
	"webhooks.md":                     withHook,
	"upload.md/With the command line": withScan,
	"upload.md/TypeScript":            withScan,
	"upload.md/Go":                    withScan,
	"api.md/Putting served text before a model": withLeak,
	"api.md/Withdrawal receipts":                withReceipt,
	"operations.md/Starting":                    alone,
	"operations.md/Settings":                    withCertificate,
	"operations.md/PostgreSQL":                  withDatabase,
	"operations.md/Moving to PostgreSQL and S3": withMove,
	"operations.md/Backup and restore":          withFolders,
	"operations.md/Evidence":                    withHeads,
	"operations.md/Retention":                   withOrg,
}

func readerOf(t *testing.T, name string) *reader {
	t.Helper()
	if prepare := prepared[name]; prepare != nil {
		return prepare(t)
	}
	return newReader(t)
}

// instead fills in the reader's own names, before all others.
func (r *reader) instead(pairs ...string) { r.fill = append(pairs, r.fill...) }

func (r *reader) link(name, to string) {
	r.t.Helper()
	if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// script puts a program on the path.
func (r *reader) script(name, text string) {
	r.t.Helper()
	r.write("bin/"+name, []byte("#!/bin/bash\n"+text+"\n"))
	if err := os.Chmod(filepath.Join(r.dir, "bin", name), 0o700); err != nil {
		r.t.Fatal(err)
	}
}

func withScan(t *testing.T) *reader {
	r := newReader(t)
	r.write("scan.pdf", readFile(t, "../testdata/scans/pump-station-record.pdf"))
	return r
}

// withClone stands in a clone of the repository, where the binary was made.
func withClone(t *testing.T) *reader {
	r := newReader(t)
	files, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	r.link("testdata", files)
	return r
}

// alone has no service: the page starts one, at an address that is free.
func alone(t *testing.T) *reader {
	r := newcomer(t)
	r.instead("127.0.0.1:8080", freeAddress(t))
	return r
}

func beginner(t *testing.T) *reader {
	r := alone(t)
	r.write("scan.pdf", readFile(t, "../testdata/scans/pump-station-record.pdf"))
	r.export("ACCESSION_URL", "http://"+r.fill[1])
	return r
}

func withOrg(t *testing.T) *reader {
	r := newReader(t)
	r.instead("--org ORG", "--org acme")
	return r
}

func withHook(t *testing.T) *reader {
	r := withOrg(t)
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	r.instead("https://hooks.example/accession", "http://"+address)
	r.export("PORT", port)
	return r
}

func withLeak(t *testing.T) *reader {
	r := newReader(t)
	id := r.s.partner("acme").submit(text("The pump of station two was overhauled.", nil))
	r.write("leaked.txt", []byte(r.s.context("acme", r.s.issue("acme", "ai_reader"), id).want(t, 200, "").Raw))
	return r
}

func withReceipt(t *testing.T) *reader {
	r := withOrg(t)
	p := r.s.partner("acme")
	id := p.submit(text("The pump of station two was overhauled.", nil))
	r.instead("RECEIPT_ID", p.withdraw(id).want(t, 200, "").field(t, "withdrawal_receipt_id"))
	return r
}

func withCertificate(t *testing.T) *reader {
	r := newcomer(t)
	certificate, key := newAuthority(t).issue("first")
	r.write("etc/tls.crt", readFile(t, certificate))
	r.write("etc/tls.key", readFile(t, key))
	r.write("etc/admin-token", []byte(adminToken+"\n"))
	return r
}

// withDatabase has a PostgreSQL server of its own, because the page makes a role there.
func withDatabase(t *testing.T) *reader {
	r := newcomer(t)
	server := cluster.Superuser(cluster.Start(t).Database(t))
	psql, err := cluster.Command(t.Context(), server, "psql")
	if err != nil {
		t.Fatal(err)
	}
	r.script("psql", "exec "+strconv.Quote(psql.Path)+` "$@" `+strconv.Quote(server))
	own, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	own.User, own.Path = url.User("accession"), "/accession"
	r.write("etc/database-url", []byte(own.String()+"\n"))
	r.write("etc/admin-token", []byte(adminToken+"\n"))
	r.export("ACCESSION_LISTEN", freeAddress(t))
	return r
}

// withMove has an installation at work in the folder that the page names, and a place for it to go to.
func withMove(t *testing.T) *reader {
	r := newReader(t)
	r.s.partner("acme").submit(text("The pump of station two was overhauled.", nil))
	r.instead("/var/lib/accession", r.s.data)
	pid := strconv.Itoa(r.s.cmd.Process.Pid)
	r.script("systemctl", `[ "$*" = "stop accession" ] && kill -TERM `+pid+` && while kill -0 `+pid+` 2>/dev/null; do sleep 0.1; done`)
	settings, err := json.Marshal(map[string]string{
		"database": cluster.Database(t), "blobs": filepath.Join(r.dir, "var", "blobs"), "quarantine": filepath.Join(r.dir, "var", "quarantine"),
		"listen": freeAddress(t), "base_url": r.s.url,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.write("etc/new.yaml", settings) // JSON is YAML too
	return r
}

func withFolders(t *testing.T) *reader {
	r := newReader(t)
	r.link("DATA", r.s.data)
	r.link("SAFE", r.s.data)
	r.export("ACCESSION_LISTEN", freeAddress(t))
	return r
}

func withHeads(t *testing.T) *reader {
	r := withOrg(t)
	r.s.wantCLI(0, "", "audit", "heads", "-o", filepath.Join(r.dir, "heads-2026-11-19.json"))
	return r
}
