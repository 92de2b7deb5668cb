package e2e

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/storetest/s3server"
)

// inS3 gives a service its storage in two buckets and a mirror in a third.
type inS3 struct {
	*s3server.Server
	buckets []string
}

func newInS3(t *testing.T, versioned bool) inS3 {
	t.Helper()
	x := inS3{Server: s3server.New(t)}
	for range 3 {
		if versioned {
			x.buckets = append(x.buckets, x.VersionedBucket(t))
		} else {
			x.buckets = append(x.buckets, x.Bucket(t, minio.MakeBucketOptions{}))
		}
	}
	return x
}

func (x inS3) env() []string {
	return append(x.Env(),
		"ACCESSION_BLOBS="+x.URL(x.buckets[0], "staging"), "ACCESSION_QUARANTINE="+x.URL(x.buckets[1], ""), "ACCESSION_MIRRORS="+x.URL(x.buckets[2], "copies/second"))
}

// objects are the files that the buckets keep below the prefix of uploads, and their contents.
func (x inS3) objects(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, bucket := range x.buckets {
		for _, path := range x.Files(t, bucket) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[path] = b
		}
	}
	return found
}

func TestMainJobInS3(t *testing.T) {
	t.Parallel()
	for name, versioned := range map[string]bool{"plain buckets": false, "versioned buckets": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newInS3(t, versioned)
			s := start(t, options{env: x.env(), flags: []string{"--part-size-bytes", "1048576"}})
			if warned := strings.Contains(s.log.String(), "keeps versions"); warned != versioned {
				t.Errorf("the log warns of versions: %v", warned)
			}
			p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
			content := bytes.Repeat(note("lighthouse"), 3<<20/len(note("lighthouse")))
			parts := cut(content, 1<<20)
			id := p.initiate("note.txt", "text/plain", len(content))
			for i, part := range parts {
				p.part(id, i+1, part).want(t, 200, "")
			}
			p.complete(id, parts).want(t, 202, "")
			p.wantReady(id)
			if text := string(s.context("harbour", reader, id).want(t, 200, "").Raw); !strings.Contains(text, "lighthouse") {
				t.Errorf("context: %s", text)
			}
			stored := x.objects(t)
			if want := 3*len(parts) + 3; len(stored) != want { // extracted text, summary and context in staging alone
				t.Errorf("%d objects, want %d", len(stored), want)
			}
			for path, b := range stored {
				if found := find(path, b, "lighthouse"); len(found) > 0 {
					t.Error(found)
				}
			}
			report, stderr, exit := s.cli(adminToken, "fsck")
			if exit != 0 || !strings.Contains(report, "0 problems") {
				t.Errorf("fsck: %d %s%s", exit, report, stderr)
			}
			p.wantWithdrawn(id, len(content))
			if left := x.objects(t); len(left) != 0 {
				t.Errorf("left behind: %d objects", len(left))
			}
		})
	}
}

// While one backend is away, nothing is confirmed; once it is back, the withdrawal confirms itself.
func TestWithdrawalWhileS3IsAway(t *testing.T) {
	t.Parallel()
	x := newInS3(t, true)
	s := start(t, options{env: x.env()})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("lighthouse"))
	p.wantReady(id)
	waiting := p.initiate("note.txt", "text/plain", len(note("later")))
	x.Stop()
	p.withdraw(id).want(t, 502, "deletion_not_confirmed")
	if st := p.status(id); st.Status != "WITHDRAWING" {
		t.Fatalf("status %s", st.Status)
	}
	s.context("harbour", reader, id).want(t, 404, "context_not_ready")
	refused := p.part(waiting, 1, note("later")).want(t, 503, "service_unavailable")
	if refused.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for _, secret := range []string{x.Address, "bucket-", "lighthouse"} {
		if strings.Contains(string(refused.Raw), secret) {
			t.Errorf("the answer tells of %s: %s", secret, refused.Raw)
		}
	}
	x.Start(t)
	if st := p.follow(id); st.Status != "WITHDRAWN" {
		t.Fatalf("status %s", st.Status)
	}
	if left := x.objects(t); len(left) != 0 {
		t.Errorf("left behind: %d objects", len(left))
	}
	p.part(waiting, 1, note("later")).want(t, 200, "") // what was refused can be repeated
	p.complete(waiting, [][]byte{note("later")}).want(t, 202, "")
	p.wantReady(waiting)
}

// An upload that some other program began in parts and never ended is debris that a withdrawal removes.
func TestWithdrawalRemovesMultipartDebris(t *testing.T) {
	t.Parallel()
	x := newInS3(t, false)
	s := start(t, options{env: x.env()})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("lighthouse"))
	p.wantReady(id)
	core := minio.Core{Client: x.Client}
	key := "staging/uploads/" + id + "/parts/000001-debris"
	begun, err := core.NewMultipartUpload(t.Context(), x.buckets[0], key, minio.PutObjectOptions{})
	if err == nil {
		_, err = core.PutObjectPart(t.Context(), x.buckets[0], key, begun, 1, strings.NewReader("debris"), 6, minio.PutObjectPartOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.wantWithdrawn(id, len(note("lighthouse")))
	if left := x.objects(t); len(left) != 0 {
		t.Errorf("left behind: %d objects", len(left))
	}
}

func TestS3SettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	x := s3server.New(t)
	bucket, data := x.Bucket(t, minio.MakeBucketOptions{}), t.TempDir()
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"no bucket":             {append(x.Env(), "ACCESSION_BLOBS="+x.URL("not-there", "")), "the bucket does not exist"},
		"wrong secret":          {append(x.Env(), "AWS_SECRET_ACCESS_KEY=wrong-secret-in-here", "ACCESSION_BLOBS="+x.URL(bucket, "")), "SignatureDoesNotMatch"},
		"nobody there":          {append(x.Env(), "ACCESSION_BLOBS=s3://bucket?endpoint=http://"+freeAddress(t)), "connection refused"},
		"secret in the address": {[]string{"ACCESSION_BLOBS=s3://name:very-secret@bucket"}, "credentials do not belong"},
		"one inside the other":  {append(x.Env(), "ACCESSION_BLOBS="+x.URL(bucket, ""), "ACCESSION_QUARANTINE="+x.URL(bucket, "q")), "must lie apart"},
	} {
		t.Run(name, func(t *testing.T) {
			s := launch(t, options{data: data + "/" + client.NewIdempotencyKey(), env: c.env})
			<-s.done
			if said := s.log.String(); !strings.Contains(said, c.want) || strings.Contains(said, "secret-in-here") || strings.Contains(said, "very-secret") {
				t.Errorf("said %q", said)
			}
		})
	}
}
