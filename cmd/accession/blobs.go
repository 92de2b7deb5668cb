package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/vault"
)

// storagePlace is one of the storage roots as the settings have it: an S3 address, or an absolute path.
type storagePlace struct {
	store   string // its name: staging, quarantine, mirror-1, …
	setting string
	value   string
}

// places are all storage roots, after check.
func (s *storageSettings) places() []storagePlace {
	places := []storagePlace{{"staging", "blobs", s.Blobs}, {"quarantine", "quarantine", s.Quarantine}}
	for i, mirror := range s.mirrors() {
		places = append(places, storagePlace{fmt.Sprintf("mirror-%d", i+1), "mirrors", mirror})
	}
	return places
}

func (s *storageSettings) mirrors() (mirrors []string) {
	for mirror := range strings.SplitSeq(s.Mirrors, ",") {
		if mirror = strings.TrimSpace(mirror); mirror != "" {
			mirrors = append(mirrors, mirror)
		}
	}
	return mirrors
}

// checkPlace completes a storage root and refuses what is none, without repeating it.
func checkPlace(name, given, fallback string) (string, error) {
	if !blobstore.IsS3(given) {
		return folder(name, given, fallback)
	}
	if _, err := blobstore.ParseS3(given); err != nil {
		return "", wrong(name, "cannot be used: %v", err)
	}
	return given, nil
}

// checkApart refuses storage roots of which one holds the other: what is debris to one would be the other's objects.
func (s *storageSettings) checkApart() error {
	places := s.places()
	for i, p := range places {
		for _, before := range places[:i] {
			if within(p.value, before.value) || within(before.value, p.value) {
				return wrong(p.setting, "must lie apart from %s: it is another copy, in a different place; use different folders, or different prefixes or buckets", before.setting)
			}
		}
	}
	return nil
}

func within(a, b string) bool {
	if blobstore.IsS3(a) != blobstore.IsS3(b) {
		return false
	}
	if !blobstore.IsS3(a) {
		a, b = resolved(a), resolved(b)
		return a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/")
	}
	inner, _ := blobstore.ParseS3(a) // checked
	outer, _ := blobstore.ParseS3(b)
	return inner.Within(outer)
}

// resolved is path with its symbolic links followed, as far as it exists.
func resolved(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if leads, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(leads, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// s3 tells whether any storage root is in S3.
func (s *storageSettings) s3() bool {
	for _, p := range s.places() {
		if blobstore.IsS3(p.value) {
			return true
		}
	}
	return false
}

// openVault opens every storage root, and has those in S3 looked at.
func (svc *service) openVault(ctx context.Context) error {
	var stores []blobstore.Store
	for _, p := range svc.settings.places() {
		store, err := svc.openPlace(ctx, p)
		if err != nil {
			return err
		}
		stores = append(stores, blobstore.Misbehave(store))
	}
	svc.vault = vault.New(svc.keys, stores[0], stores[1], stores[2:]...)
	return nil
}

func (svc *service) openPlace(ctx context.Context, p storagePlace) (blobstore.Store, error) {
	if !blobstore.IsS3(p.value) {
		disk, err := blobstore.NewDisk(p.store, p.value)
		if err != nil {
			return nil, err
		}
		svc.closers = append(svc.closers, disk.Close)
		return disk, nil
	}
	s3, err := openS3(ctx, p)
	if err != nil {
		return nil, err
	}
	svc.closers = append(svc.closers, s3.Close)
	found, err := s3.Examine(ctx)
	if err != nil {
		return nil, err
	}
	for _, warning := range found.Warnings {
		svc.log.WarnContext(ctx, "storage: "+warning, "store", p.store)
	}
	return s3, nil
}

func openS3(ctx context.Context, p storagePlace) (*blobstore.S3, error) {
	address, err := blobstore.ParseS3(p.value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.store, err)
	}
	return blobstore.OpenS3(ctx, p.store, address, blobstore.S3Options{})
}

// examineStorage looks at the storage roots in S3; folders are made by serve.
func examineStorage(ctx context.Context, s *storageSettings) (found []finding) {
	for _, p := range s.places() {
		if !blobstore.IsS3(p.value) {
			continue
		}
		f := finding{Name: p.store, Detail: "S3, cannot be used"}
		store, err := openS3(ctx, p)
		if err == nil {
			var e blobstore.Examination
			e, err = store.Examine(ctx)
			_ = store.Close() // idle connections
			f.OK, f.Detail, f.Remedy = err == nil, e.Detail, strings.Join(e.Warnings, "; ")
		}
		if err != nil {
			f.Remedy = err.Error()
		}
		found = append(found, f)
	}
	return found
}
