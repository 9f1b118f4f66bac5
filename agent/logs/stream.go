package logs

import (
	"errors"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

const (
	// partSize is how much of a log goes into one message, in bytes.
	partSize = 256 << 10
	// pace is the time between two reads of a log that is followed, at first and
	// when nothing comes.
	pace     = 10 * time.Millisecond
	slowPace = 160 * time.Millisecond
)

// Stream sends the output of one task.
type Stream struct {
	File   *os.File
	Times  *os.File        // when it was written; nil: that is not known
	Over   <-chan struct{} // closed once nothing more is written
	Offset int64           // of what is sent next
	To     grpc.ServerStreamingServer[clusterapi.LogsResponse]
}

// Send sends what there is, and with follow what is written until the task is over.
func (s *Stream) Send(follow bool) error {
	buffer := make([]byte, partSize)
	for wait := pace; ; {
		over := !follow
		select {
		case <-s.Over:
			over = true
		default:
		}
		sent, err := s.rest(buffer)
		switch {
		case err != nil:
			return err
		case over: // it was, before the file was read to its end
			return nil
		case sent:
			wait = pace
		default:
			wait = min(2*wait, slowPace)
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.To.Context().Done():
			timer.Stop()
			return status.FromContextError(s.To.Context().Err()).Err()
		case <-s.Over:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// rest sends what is there, and reports whether that was anything.
func (s *Stream) rest(buffer []byte) (sent bool, err error) {
	for {
		n, err := s.File.ReadAt(buffer, s.Offset)
		if n > 0 {
			part := &clusterapi.LogsResponse{Offset: s.Offset, Data: buffer[:n]}
			if s.Times != nil {
				index, err := readTimes(s.Times, s.Offset, s.Offset+int64(n))
				if err != nil {
					return sent, status.Errorf(codes.Unavailable, "%v", err)
				}
				part.Times = index.Bytes()
			}
			if err := s.To.Send(part); err != nil {
				return sent, err
			}
			s.Offset += int64(n)
			sent = true
		}
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			return sent, status.Errorf(codes.Unavailable, "read the log: %v", err)
		}
	}
}
