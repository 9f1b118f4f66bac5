package lsp

import (
	"errors"
	"io"

	"github.com/creachadair/jrpc2/channel"
)

// stream is the framing of the protocol. Clients may state the type of their content, or not.
type stream struct{ channel.Channel }

func newStream(in io.Reader, out io.Writer) stream {
	return stream{channel.Header("")(in, unclosed{out})}
}

// unclosed is a stream that its owner closes.
type unclosed struct{ io.Writer }

// Close implements [io.Closer].
func (unclosed) Close() error { return nil }

// Recv implements [channel.Channel].
func (s stream) Recv() ([]byte, error) {
	msg, err := s.Channel.Recv()
	if _, ok := errors.AsType[*channel.ContentTypeMismatchError](err); ok {
		err = nil
	}
	return msg, err
}
