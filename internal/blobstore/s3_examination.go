package blobstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"
)

// ErrLocked: the bucket keeps every object for a time in which nobody can delete it, so no withdrawal could be confirmed.
var ErrLocked = errors.New("the bucket locks objects by default")

// Examination is what a store tells its operator about itself.
type Examination struct {
	Detail   string   // one line
	Warnings []string // sentences, each saying what to do or know
}

// Examine looks at what the bucket does behind the store's back, and writes, reads, and deletes an object to prove that all of it is
// allowed. Errors: ErrUnavailable, with what was refused; ErrLocked unless the address allows it.
func (s *S3) Examine(ctx context.Context) (e Examination, err error) {
	e.Detail = "S3, bucket " + s.address.Bucket + " at " + s.address.Host
	if !s.address.Secure {
		e.warn("is reached without TLS: what is stored is sealed, but who may ask for it is not hidden")
	}
	locked, err := s.examineLock(ctx, &e)
	if err != nil {
		return e, err
	}
	if err := s.examineVersions(ctx, &e); err != nil {
		return e, err
	}
	if rules, err := s.client.GetBucketLifecycle(ctx, s.address.Bucket); err == nil && len(rules.Rules) > 0 {
		e.warn("has a lifecycle of %d rules: a rule that deletes objects deletes what is in custody", len(rules.Rules))
	}
	if r, err := s.client.GetBucketReplication(ctx, s.address.Bucket); err == nil && len(r.Rules) > 0 {
		e.warn("replicates to other buckets, where no withdrawal deletes anything: end the replication, or name the other bucket as a mirror instead")
	}
	if locked {
		return e, nil // a trial object would stay
	}
	return e, s.try(ctx, &e)
}

func (e *Examination) warn(format string, args ...any) {
	e.Warnings = append(e.Warnings, "the bucket "+fmt.Sprintf(format, args...))
}

func (s *S3) examineLock(ctx context.Context, e *Examination) (byDefault bool, err error) {
	enabled, mode, validity, unit, err := s.client.GetObjectLockConfig(ctx, s.address.Bucket)
	switch {
	case isCode(err, "ObjectLockConfigurationNotFoundError", "NoSuchObjectLockConfiguration", minio.NotImplemented, minio.MethodNotAllowed):
		return false, nil
	case isCode(err, minio.AccessDenied):
		e.warn("does not let object lock be seen (s3:GetBucketObjectLockConfiguration): a lock would keep withdrawals from being confirmed")
		return false, nil
	case err != nil:
		return false, s.fault(ctx, "examine", err)
	case enabled != "Enabled":
		return false, nil
	case mode == nil || validity == nil || unit == nil:
		e.warn("can lock objects: do not lock what is in custody, or its withdrawal is not confirmed before the lock ends")
		return false, nil
	}
	retention := fmt.Sprintf("%s, %d %s", *mode, *validity, strings.ToLower(unit.String()))
	if !s.address.AllowLock {
		return true, fmt.Errorf("%s: %w (%s): no withdrawal could be confirmed before that. Use a bucket without a default retention, or add object_lock=allow to the address", s.name, ErrLocked, retention)
	}
	e.warn("locks every object (%s): no withdrawal is confirmed before that", retention)
	return true, nil
}

func (s *S3) examineVersions(ctx context.Context, e *Examination) error {
	v, err := s.client.GetBucketVersioning(ctx, s.address.Bucket)
	switch {
	case isCode(err, minio.NotImplemented, minio.MethodNotAllowed, "VersioningNotConfigured"):
	case isCode(err, minio.AccessDenied):
		e.warn("does not let versioning be seen (s3:GetBucketVersioning); every version is deleted all the same")
	case err != nil:
		return s.fault(ctx, "examine", err)
	case v.Enabled() || v.Suspended():
		e.Detail += ", versioning " + strings.ToLower(v.Status)
		e.warn("keeps versions (%s): deletions remove every version, which the credentials must be allowed to (s3:DeleteObjectVersion)", strings.ToLower(v.Status))
	}
	return nil
}

// try proves that objects can be written, read, and deleted so that nothing is left.
func (s *S3) try(ctx context.Context, e *Examination) error {
	key, content := "trial/"+strings.ToLower(rand.Text()), []byte("accession was here")
	write := func() error {
		w, err := s.Create(ctx, key, int64(len(content)))
		if err != nil {
			return err
		}
		if err = w.WriteBlock(content); err == nil {
			err = w.Commit()
		}
		if err != nil {
			return errors.Join(err, w.Abort())
		}
		return nil
	}
	err := write()
	if errors.Is(err, errNotImplemented) { // If-None-Match
		s.unconditional.Store(true)
		err = write()
	}
	if err != nil {
		return fmt.Errorf("trial of writing: %w", err)
	}
	err = write()
	if !errors.Is(err, ErrExists) && !s.unconditional.Load() {
		if err != nil {
			return errors.Join(fmt.Errorf("trial of writing: %w", err), s.Delete(ctx, key))
		}
		e.Detail += ", no conditional writes"
	}
	if err := s.readTrial(ctx, key, content); err != nil {
		return errors.Join(fmt.Errorf("trial of reading: %w", err), s.Delete(ctx, key))
	}
	if err := s.Delete(ctx, key); err != nil {
		return fmt.Errorf("trial of deleting: %w", err)
	}
	return nil
}

func (s *S3) readTrial(ctx context.Context, key string, content []byte) error {
	o, err := s.Open(ctx, key)
	if err != nil {
		return err
	}
	defer o.Close()
	b := make([]byte, o.Size())
	if _, err := o.ReadAt(b, 0); err != nil && err != io.EOF {
		return err
	}
	if string(b) != string(content) {
		return fmt.Errorf("%s: other bytes came back", s.name)
	}
	return nil
}
