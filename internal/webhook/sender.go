package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	readAtMost    = 64 << 10  // bytes of an answer, which nobody looks at: the connection can be used again
	longestAdvice = time.Hour // of a Retry-After
)

// sender makes single attempts.
type sender struct {
	client  *http.Client
	timeout time.Duration
}

func newSender(private bool, timeout time.Duration) *sender {
	return &sender{timeout: timeout, client: &http.Client{
		Transport:     newTransport(private, timeout, nil),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// post sends body once. advice is how long the receiver asks to be left alone; 0 where it does not.
func (s *sender) post(ctx context.Context, url, id string, secrets [][]byte, body []byte) (a custody.DeliveryAttempt, advice time.Duration, err error) {
	began := time.Now()
	a.At = custody.Now()
	signature, err := sign(secrets, id, began, body)
	if err != nil {
		return a, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return a, 0, err
	}
	request.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"accession-webhook/1"},
		"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(began.Unix(), 10)}, "Webhook-Signature": {signature},
	}
	answer, err := s.client.Do(request)
	a.Latency = time.Since(began)
	if err != nil {
		a.Outcome = failure(err)
		return a, 0, nil
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, readAtMost)
	a.Status, a.Outcome = answer.StatusCode, outcomeOf(answer.StatusCode)
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		advice = min(time.Duration(min(seconds, 3600))*time.Second, longestAdvice)
	}
	return a, advice, nil
}

func outcomeOf(status int) string {
	switch {
	case status >= 200 && status <= 299:
		return custody.DeliveryAccepted
	case status == http.StatusConflict:
		return custody.DeliveryDuplicate
	case status == http.StatusBadRequest:
		return custody.DeliveryRefused
	case status == http.StatusGone:
		return custody.DeliveryGone
	}
	return custody.DeliveryUnexpected // redirects too: they are not followed
}

func failure(err error) string {
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errAddress):
		return custody.DeliveryAddressRefused
	case errors.As(err, &certificate):
		return custody.DeliveryUntrusted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return custody.DeliveryTimeout
	}
	return custody.DeliveryNoConnection
}
