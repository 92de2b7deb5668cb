package scanner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// DefaultDatabase is where Debian's freshclam keeps the signatures.
const DefaultDatabase = "/var/lib/clamav"

// Inspection is the state of what scanning needs on this machine.
type Inspection struct {
	Binary   Binary
	Database Database
}

// Inspect looks for the clamd program (see InspectBinary) and its signatures (see InspectDatabase). It starts no clamd.
func Inspect(ctx context.Context, binary, database string) Inspection {
	return Inspection{InspectBinary(ctx, binary), InspectDatabase(database)}
}

// Binary is the clamd program.
type Binary struct {
	Path    string // empty when it is not installed
	Version string // such as "1.4.6"; empty when it does not run
	Advice  string // what the operator should do; empty when all is well
}

// InspectBinary finds clamd, by name on PATH and in the sbin folders, or at a path, and asks its version. Empty means
// "clamd".
func InspectBinary(ctx context.Context, binary string) Binary {
	path, err := findBinary(binary)
	if err != nil {
		return Binary{Advice: adviceInstall}
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	version, isClamAV := strings.CutPrefix(string(out), "ClamAV ")
	if err != nil || !isClamAV {
		return Binary{Path: path, Advice: path + " does not tell its version: reinstall clamav-daemon"}
	}
	version, _, _ = strings.Cut(strings.TrimSpace(version), "/")
	return Binary{Path: path, Version: version}
}

const adviceInstall = "clamd is not installed: apt-get install clamav-daemon"

// findBinary also looks into the sbin folders, which are not on an ordinary user's PATH.
func findBinary(binary string) (string, error) {
	if binary == "" {
		binary = "clamd"
	}
	path, err := exec.LookPath(binary)
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if err != nil && !strings.Contains(binary, "/") {
			path, err = exec.LookPath(filepath.Join(dir, binary))
		}
	}
	return path, err
}

// Database is a folder of signatures.
type Database struct {
	Folder  string
	Usable  bool      // there are signatures in it
	Full    bool      // both of ClamAV's official databases, main and daily, are among them
	Version string    // of daily; empty without it
	Date    time.Time // when the newest was built (main, daily) or, without those, last changed; UTC; zero without any
	Advice  string    // what the operator should do; empty when all is well
	// Fingerprint is of the names, lengths and times of its files: it changes when any of them does.
	Fingerprint string
}

// signatureFile holds the endings of the files in which ClamAV looks for malware signatures.
var signatureFile = map[string]bool{
	".cvd": true, ".cld": true, ".cud": true, ".hdb": true, ".hdu": true, ".hsb": true, ".hsu": true, ".mdb": true,
	".mdu": true, ".msb": true, ".msu": true, ".ndb": true, ".ndu": true, ".ldb": true, ".ldu": true, ".cdb": true,
	".cbc": true, ".yar": true, ".yara": true, ".idb": true, ".pdb": true,
}

// InspectDatabase looks at a folder of signatures; empty means DefaultDatabase. It reads names and headers, it does not
// verify signatures: clamd does when it loads them.
func InspectDatabase(folder string) (db Database) {
	if folder == "" {
		folder = DefaultDatabase
	}
	db.Folder = folder
	entries, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		db.Advice = adviceReadable(folder)
		return db
	}
	official := map[string]bool{}
	var built, changed time.Time
	print := sha256.New()
	defer func() {
		if db.Usable {
			db.Fingerprint = hex.EncodeToString(print.Sum(nil)[:8])
		}
	}()
	for _, entry := range entries {
		name, ending := strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())), filepath.Ext(entry.Name())
		info, err := os.Stat(filepath.Join(folder, entry.Name()))
		if err != nil || !info.Mode().IsRegular() || !signatureFile[ending] {
			continue // a file that vanished was replaced by freshclam under another ending
		}
		db.Usable = true
		changed = later(changed, info.ModTime())
		fmt.Fprintf(print, "%q %d %d\n", entry.Name(), info.Size(), info.ModTime().UnixNano())
		if (name != "main" && name != "daily") || (ending != ".cvd" && ending != ".cld") {
			continue
		}
		version, date, err := readHeader(filepath.Join(folder, entry.Name()))
		if err != nil {
			return Database{Folder: folder, Usable: true,
				Advice: fmt.Sprintf("%s in %s is damaged: run freshclam", entry.Name(), folder)}
		}
		official[name] = true
		built = later(built, date)
		if name == "daily" {
			db.Version = version
		}
	}
	db.Full = official["main"] && official["daily"]
	db.Date = changed.UTC()
	if !built.IsZero() {
		db.Date = built.UTC()
	}
	switch {
	case !db.Usable:
		db.Advice = fmt.Sprintf("no signature database in %s: run freshclam", folder)
	case !db.Full:
		db.Advice = fmt.Sprintf("only test or private signatures in %s, they protect from next to nothing: run freshclam",
			folder)
	}
	return db
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// readHeader reads the 512 bytes before a .cvd or .cld, fields divided by colons:
// ClamAV-VDB, time as text, version, signatures, level, MD5, digital signature, builder, time in Unix seconds.
// Source: ClamAV, libclamav/cvd.c.
func readHeader(path string) (version string, built time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("open signature database: %w", err)
	}
	defer f.Close()
	header := make([]byte, 512)
	if _, err := f.ReadAt(header, 0); err != nil {
		return "", time.Time{}, fmt.Errorf("read header of signature database: %w", err)
	}
	fields := strings.Split(strings.TrimRight(string(header), " \x00\n"), ":")
	if len(fields) < 9 || fields[0] != "ClamAV-VDB" {
		return "", time.Time{}, fmt.Errorf("header of signature database has %d fields, not 9", len(fields))
	}
	seconds, err := strconv.ParseInt(fields[8], 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("build time of signature database: %w", err)
	}
	return fields[2], time.Unix(seconds, 0).UTC(), nil
}
