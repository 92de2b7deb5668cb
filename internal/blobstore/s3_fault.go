package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"syscall"

	"github.com/minio/minio-go/v7"
)

var (
	errStalled = errors.New("no answer in time")
	// errNotImplemented: the service does not know what it was asked for.
	errNotImplemented = errors.New("not implemented there")
	// errCut: an answer began and broke off. The object itself is as long as the service said.
	errCut = fmt.Errorf("%w: the answer broke off", ErrUnavailable)
)

// fault names the store and says what went wrong without the address, bucket or key that the library's errors carry. Whatever is
// not the absence of an object, a taken name or a full store is ErrUnavailable, unless ctx, the caller's, has ended.
func (s *S3) fault(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{ErrExists, ErrNotFound, ErrNoSpace, ErrUnavailable, ErrNotEmpty, ErrKey, os.ErrClosed} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %s: %w", s.name, op, err)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %s: %w", s.name, op, ctx.Err())
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return fmt.Errorf("%s: %s: %w", s.name, op, s3Answer(answer))
	}
	return fmt.Errorf("%s: %s: %w: %s", s.name, op, ErrUnavailable, networkFault(err))
}

// s3Full are the codes by which services say that they take no more.
var s3Full = []string{"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "InsufficientStorage", "InsufficientCapacity"}

func s3Answer(answer minio.ErrorResponse) error {
	switch {
	case answer.Code == minio.NoSuchKey || answer.Code == "NoSuchVersion":
		return ErrNotFound
	case answer.StatusCode == http.StatusInsufficientStorage || slices.Contains(s3Full, answer.Code):
		return ErrNoSpace
	case answer.StatusCode == http.StatusNotImplemented || answer.Code == minio.NotImplemented:
		return fmt.Errorf("%w: %w", ErrUnavailable, errNotImplemented)
	case answer.Code == minio.NoSuchBucket:
		return fmt.Errorf("%w: the bucket does not exist", ErrUnavailable)
	}
	return fmt.Errorf("%w: the service answered %d %s", ErrUnavailable, answer.StatusCode, s3Code(answer.Code))
}

var s3CodeForm = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// s3Code is the code of an answer, if it looks like one: the rest of it is the service's text.
func s3Code(code string) string {
	if s3CodeForm.MatchString(code) {
		return code
	}
	return "without a code"
}

func networkFault(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, errStalled), errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.Canceled):
		return errStalled.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection broken"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the endpoint's name is not known"
	}
	return "no connection"
}

// isCode tells whether the service answered with one of the codes.
func isCode(err error, codes ...string) bool {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && slices.Contains(codes, answer.Code)
}

// worthAnotherTry tells whether a request that changed nothing may succeed when it is repeated.
func worthAnotherTry(err error) bool {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return true // the network's
	}
	switch answer.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return isCode(err, "SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "OperationAborted", "ConditionalRequestConflict")
}
