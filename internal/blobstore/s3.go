package blobstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// maxS3Object is what S3 takes in one request.
	maxS3Object = 5 << 30
	// MaxS3Plain is the most plaintext, in bytes, that Seal puts into one object of an S3 store: a part cannot be larger.
	MaxS3Plain = maxS3Object - headerSize - (maxS3Object/segmentSize+1)*tagSize
	// s3Tries is how often a request is made that can be repeated.
	s3Tries = 3
	// s3Cleanup is how long an abandoned object may take to be deleted; the sweeper finds what is left.
	s3Cleanup = 15 * time.Second
)

// S3 is a Store in a bucket of an S3 service (architecture, "Bytes"). Every object is one PUT with a checksum over the wire; a
// name that is taken is refused by the service. Versions, delete markers and incomplete multipart uploads are objects too:
// listed, deleted, and looked for before a deletion is confirmed.
type S3 struct {
	name      string
	address   S3Address
	folder    string // before every key; "" or ends in "/"
	client    *minio.Client
	core      minio.Core
	transport *http.Transport
	stall     time.Duration
	// unconditional: the service knows no If-None-Match, so the uniqueness of names is all there is.
	unconditional atomic.Bool
	// unversioned: the service knows no versions at all.
	unversioned atomic.Bool
}

// S3Options of OpenS3. The zero value takes credentials from where AWS tools look for them: environment, shared credentials file,
// role of the machine.
type S3Options struct {
	AccessKeyID, SecretAccessKey string
	// Stall is how long the service may be silent; default 10 s. A request that can be repeated is made three times.
	Stall time.Duration
}

// OpenS3 prepares the store called name. It looks for credentials and asks the service nothing; see Examine. Its errors are for the
// operator.
func OpenS3(ctx context.Context, name string, address S3Address, o S3Options) (*S3, error) {
	creds := credentials.NewStaticV4(o.AccessKeyID, o.SecretAccessKey, "")
	if o.AccessKeyID == "" {
		creds = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
		if err := haveCredentials(ctx, creds); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if o.Stall == 0 {
		o.Stall = 10 * time.Second
	}
	lookup := map[string]minio.BucketLookupType{"path": minio.BucketLookupPath, "host": minio.BucketLookupDNS}[address.Style]
	s := &S3{name: name, address: address, transport: newS3Transport(o.Stall), stall: o.Stall}
	if address.Prefix != "" {
		s.folder = address.Prefix + "/"
	}
	var err error
	s.client, err = minio.New(address.Host, &minio.Options{
		Creds: creds, Secure: address.Secure, Region: address.Region, BucketLookup: lookup, TrailingHeaders: true,
		MaxRetries: s3Tries, Transport: s3RoundTripper{s.transport, o.Stall},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: the endpoint is not one that can be used", name)
	}
	s.core = minio.Core{Client: s.client}
	return s, nil
}

func haveCredentials(ctx context.Context, creds *credentials.Credentials) error {
	found := make(chan error, 1)
	go func() {
		v, err := creds.GetWithContext(nil)
		if err == nil && v.AccessKeyID == "" {
			err = errors.New("none")
		}
		found <- err
	}()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // the address of a machine's role may lead nowhere
	defer cancel()
	var err error
	select {
	case err = <-found:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return errors.New("no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, bring a shared credentials file, or give the machine a role")
	}
	return nil
}

// Name implements Store.
func (s *S3) Name() string { return s.name }

// Close closes idle connections. Open objects and writers stay usable.
func (s *S3) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Create implements Store. Nothing is reserved, and nothing is sent before the first block: ErrExists, ErrNoSpace and ErrUnavailable
// come from WriteBlock and Commit. size is at most 5 GiB.
func (s *S3) Create(ctx context.Context, key string, size int64) (Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fault(ctx, "create", err)
	}
	if err := checkKey(key); err != nil {
		return nil, s.fault(ctx, "create", err)
	}
	if size < 0 || size > maxS3Object {
		return nil, fmt.Errorf("%s: create: size %d is not within 0 and %d", s.name, size, int64(maxS3Object))
	}
	return newS3Writer(ctx, s, key, size), nil
}

// Delete implements Store: every version, delete marker and incomplete multipart upload of the key goes, and none is found again.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return s.fault(ctx, "delete", err)
	}
	if err := checkKey(key); err != nil {
		return s.fault(ctx, "delete", err)
	}
	_, err := s.erase(ctx, func() entries { return s.entriesOf(ctx, key) })
	return s.fault(ctx, "delete", err)
}

// purge is Purge in a few requests for a thousand objects, instead of some for each.
func (s *S3) purge(ctx context.Context, prefix string) (deleted int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, s.fault(ctx, "purge", err)
	}
	deleted, err = s.erase(ctx, func() entries { return s.entriesUnder(ctx, prefix) })
	return deleted, s.fault(ctx, "purge", err)
}

// CopyFrom copies an object of another store of the same service without its bytes passing through here; durable on return. done is
// false, without an error, where only reading and writing is left: another service, or one that refuses such copies.
func (s *S3) CopyFrom(ctx context.Context, from Store, key string) (done bool, err error) {
	source, ok := from.(*S3)
	if !ok || source.address.Host != s.address.Host {
		return false, nil
	}
	if err := checkKey(key); err != nil {
		return false, s.fault(ctx, "copy", err)
	}
	_, err = s.client.CopyObject(ctx,
		minio.CopyDestOptions{Bucket: s.address.Bucket, Object: s.folder + key},
		minio.CopySrcOptions{Bucket: source.address.Bucket, Object: source.folder + key})
	if isCode(err, minio.AccessDenied, minio.NotImplemented) {
		return false, nil
	}
	return err == nil, s.fault(ctx, "copy", err)
}
