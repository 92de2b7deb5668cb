package scanner

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
)

// errUnhealthy marks a clamd that answers, but wrongly; it comes wrapped in ErrUnavailable.
var errUnhealthy = errors.New("clamd does not work as it must")

// Health proves that clamd finds the EICAR test file, lets an innocent text pass, and says so when it meets content that
// it cannot look into (encrypted; nested beyond its limit). A PING would only prove that a process listens. The error
// wraps ErrUnavailable and says which setting to change. It costs four small scans, a few milliseconds.
func (c *Clamd) Health(ctx context.Context) (Engine, error) {
	engine, err := c.version(ctx)
	if err != nil {
		return Engine{}, err
	}
	probes, err := healthProbes()
	if err != nil {
		return Engine{}, fmt.Errorf("build health probes: %w", err)
	}
	for _, p := range probes {
		report, err := c.stream(ctx, bytes.NewReader(p.content), int64(len(p.content)))
		if err != nil {
			return Engine{}, err
		}
		if report.Outcome != p.want {
			return Engine{}, unavailable("%w: %s is %s, not %s: %s", errUnhealthy, p.name, report.Outcome, p.want, p.advice)
		}
	}
	return engine, nil
}

type probe struct {
	name    string
	content []byte
	want    Outcome
	advice  string
}

func healthProbes() ([]probe, error) {
	encrypted, err := encryptedArchive()
	if err != nil {
		return nil, err
	}
	nested, err := nestedArchive()
	if err != nil {
		return nil, err
	}
	// clamd remembers what it found clean: a fresh text makes it look again.
	innocent := "an ordinary sentence, " + rand.Text()
	return []probe{
		{"the EICAR test file", eicar(), Infected, "its signatures are not usable, run freshclam"},
		{"an innocent text", []byte(innocent), Clean, "check its signatures and its log"},
		{"an encrypted archive", encrypted, Unscannable, "set AlertEncrypted yes in clamd.conf"},
		{"an archive nested too deeply", nested, Unscannable, "set AlertExceedsMax yes in clamd.conf"},
	}, nil
}

// eicar returns the EICAR test file, put together here so that no virus scanner quarantines the source or the binary.
func eicar() []byte {
	return bytes.Join([][]byte{
		[]byte(`X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR`), []byte("STANDARD"), []byte("ANTIVIRUS"), []byte("TEST"), []byte("FILE!$H+H*"),
	}, []byte("-"))
}

// encryptedArchive is a zip whose only member says that it is encrypted (bit 0 of its flags).
var encryptedArchive = sync.OnceValues(func() ([]byte, error) {
	const payload = "twelve bytes of key header, then noise"
	return archive(&zip.FileHeader{Name: "member", Method: zip.Store, Flags: 1, CRC32: 1,
		CompressedSize64: uint64(len(payload)), UncompressedSize64: uint64(len(payload) - 12)}, []byte(payload))
})

// nestedArchive is a zip in a zip, 120 deep: ClamAV's MaxRecursion is 17 by default and 100 at most.
var nestedArchive = sync.OnceValues(func() ([]byte, error) {
	content := []byte("the innermost member")
	for range 120 {
		var err error
		header := &zip.FileHeader{Name: "member", Method: zip.Store, CRC32: crc32.ChecksumIEEE(content),
			CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(len(content))}
		if content, err = archive(header, content); err != nil {
			return nil, err
		}
	}
	return content, nil
})

// archive is a zip with one member, stored as it is.
func archive(header *zip.FileHeader, payload []byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	member, err := w.CreateRaw(header)
	if err != nil {
		return nil, err
	}
	if _, err := member.Write(payload); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
