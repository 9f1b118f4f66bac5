package notices

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
)

func (s *Sender) webhook(ctx context.Context, to *schema.WebhookReceiver, sent *notice.Notice) *Failure {
	body, failure := encode(sent)
	if failure != nil {
		return failure
	}
	header := http.Header{}
	header.Set(HeaderID, sent.ID)
	now := s.now()
	header.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	if (to.Secret != schema.Text{}) {
		secret, failure := s.open(to.Secret)
		if failure != nil {
			return failure
		}
		header.Set(HeaderSignature, Sign(secret, sent.ID, now, body))
	}
	return s.post(ctx, to.URL, header, body)
}

func (s *Sender) slack(ctx context.Context, to *schema.SlackReceiver, sent *notice.Notice) *Failure {
	return s.post(ctx, to.URL, http.Header{}, slackBody(sent))
}

// post sends a body to an address that is sensitive.
func (s *Sender) post(ctx context.Context, to schema.Text, header http.Header, body []byte) *Failure {
	address, failure := s.open(to)
	if failure != nil {
		return failure
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &Failure{Cause: notice.CauseInvalid, Text: "its url is no address"}
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "fray")
	response, err := s.client.Do(request)
	if err != nil {
		return exchangeFailure(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	return statusFailure(response, s.now())
}

// statusFailure is what a response says, nil for one that takes the message.
func statusFailure(response *http.Response, now time.Time) *Failure {
	code := response.StatusCode
	switch {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return &Failure{Cause: notice.CauseRedirect, Code: code, Text: fmt.Sprintf("it answers with a redirect (%d), and redirects are not followed: write the address that it redirects to", code)}
	}
	f := &Failure{Cause: notice.CauseStatus, Code: code, Text: fmt.Sprintf("it answers with status %d", code), After: retryAfter(response.Header.Get("Retry-After"), now)}
	if name := http.StatusText(code); name != "" {
		f.Text += " (" + name + ")"
	}
	switch code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		f.Rejected = true
	}
	return f
}

// retryAfter reads seconds or a time.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(longestRetry/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// exchangeFailure is why there was no response, without the address, which errors of the
// standard library repeat.
func exchangeFailure(err error) *Failure {
	unreachable := func(text string) *Failure { return &Failure{Cause: notice.CauseUnreachable, Text: text} }
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return unreachable("the host in its url is not known")
		}
		return unreachable("the host in its url cannot be looked up")
	}
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case unverified:
		return &Failure{Cause: notice.CauseUntrusted, Text: "its certificate is not one that this machine trusts"}
	case notTLS:
		return &Failure{Cause: notice.CauseUntrusted, Text: "it does not answer with TLS"}
	case errors.Is(err, context.Canceled):
		return &Failure{Cause: notice.CauseCanceled, Text: "the delivery was cut short"}
	case isNet && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return &Failure{Cause: notice.CauseTimeout, Text: "it did not answer in time"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable("nothing listens at its address (connection refused)")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		return unreachable("it closed the connection without an answer")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return unreachable("its host cannot be reached")
	}
	return unreachable("there was no answer that HTTP allows")
}
