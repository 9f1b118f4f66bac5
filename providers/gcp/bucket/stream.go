package bucket

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"

	"google.golang.org/api/storage/v1"

	"github.com/fray-ml/fray/providers/gcp/client"
)

// stream is a blob that is read. A connection that breaks is taken up again where it
// broke, of the same generation. Whatever arrives earns new patience.
type stream struct {
	ctx      context.Context
	failures *streak
	call     func() *storage.ObjectsGetCall

	body   io.ReadCloser
	is     header // of the first answer
	seen   int64  // bytes
	sum    uint32 // of those
	opened bool   // the first answer has come
}

// open asks for the rest, until it comes or patience is over.
func (s *stream) open() error {
	backoff := s.failures.backoff()
	for {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		err := s.request()
		if err == nil || !s.failures.goesOn(err) {
			return err
		}
		if cause := client.Pause(s.ctx, backoff.Pause()); cause != nil {
			return fmt.Errorf("%w; before that: %w", cause, err)
		}
	}
}

// request asks once.
func (s *stream) request() error {
	call := s.call()
	if s.opened {
		call.Generation(int64(s.is.generation))
	}
	if s.seen > 0 {
		call.Header().Set("Range", "bytes="+strconv.FormatInt(s.seen, 10)+"-")
	}
	answer, err := call.Download()
	if err != nil {
		return err
	}
	is, err := headerOf(answer)
	switch {
	case err != nil:
	case s.opened && is.generation != s.is.generation:
		err = fmt.Errorf("the service answers with version %d for %d", is.generation, s.is.generation)
	case s.seen > 0 && answer.StatusCode != http.StatusPartialContent:
		err = errors.New("the service answers with the whole for a part")
	}
	if err != nil {
		answer.Body.Close()
		return err
	}
	if !s.opened {
		s.is, s.opened = is, true
	}
	s.body = answer.Body
	return nil
}

// Read reads what comes next.
func (s *stream) Read(p []byte) (int, error) {
	for {
		n, err := s.body.Read(p)
		s.seen += int64(n)
		s.sum = crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), p[:n])
		if n > 0 {
			s.failures.end()
		}
		switch {
		case errors.Is(err, io.EOF) && s.is.checked && s.sum != s.is.checksum:
			return n, fmt.Errorf("%w: its CRC32C is %08x, of %08x", client.ErrDamaged, s.sum, s.is.checksum)
		case err == nil, errors.Is(err, io.EOF):
			return n, err
		case n > 0:
			return n, nil // the next Read gets the error again
		case s.ctx.Err() != nil:
			return 0, context.Cause(s.ctx)
		case !s.failures.lasts(): // whatever broke it
			return 0, err
		}
		s.body.Close()
		if err := s.open(); err != nil {
			return 0, err
		}
	}
}

// Close ends the reading.
func (s *stream) Close() error { return s.body.Close() }

var _ io.ReadCloser = (*stream)(nil)
