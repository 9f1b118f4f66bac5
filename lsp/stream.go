package lsp

import (
	"errors"
	"io"

	"github.com/creachadair/jrpc2/channel"
)

// stream is the framing of the protocol. Clients may state the type of their content, or not.
type stream struct{ channel.Channel }

func newStream(in io.Reader, out io.WriteCloser) stream { return stream{channel.Header("")(in, out)} }

// Recv implements [channel.Channel].
func (s stream) Recv() ([]byte, error) {
	msg, err := s.Channel.Recv()
	if _, ok := errors.AsType[*channel.ContentTypeMismatchError](err); ok {
		err = nil
	}
	return msg, err
}
