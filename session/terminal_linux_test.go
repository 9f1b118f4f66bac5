package session

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/terminal"
	"github.com/fray-ml/fray/terminal/terminaltest"
)

// scriptedStream is a command elsewhere. Its terminal is resized while it begins,
// and it ends once it has heard of that.
type scriptedStream struct {
	execStream

	t     *testing.T
	begun func()
	ctx   context.Context
	sizes chan *clusterapi.WindowSize
}

func (s *scriptedStream) Send(m *clusterapi.ExecRequest) error {
	switch kind := m.GetKind().(type) {
	case *clusterapi.ExecRequest_Start:
		s.begun()
	case *clusterapi.ExecRequest_Resize:
		s.sizes <- kind.Resize
	}
	return nil
}

func (s *scriptedStream) Recv() (*clusterapi.ExecResponse, error) {
	select {
	case size := <-s.sizes:
		if size.GetRows() != 50 || size.GetColumns() != 120 {
			s.t.Errorf("told of %v, want 50 rows of 120", size)
		}
		return &clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{}}, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// TestExecTellsOfAResizeAtItsBegin: the terminal changes its size after it was
// read, before the command has begun.
func TestExecTellsOfAResizeAtItsBegin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, screen := terminaltest.Open(t)
	s := &scriptedStream{t: t, ctx: ctx, sizes: make(chan *clusterapi.WindowSize, 8), begun: func() {
		if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 120, Row: 50}); err != nil {
			t.Error(err)
		}
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGWINCH); err != nil {
			t.Error(err)
		}
	}}
	session := &execSession{
		terminal: &terminal.Terminal{Stdin: strings.NewReader(""), Stdout: screen, Stderr: io.Discard},
		link:     &hostLink{exec: func(context.Context) (execStream, error) { return s, nil }},
		query:    Query{Command: []string{"any"}, Tty: true}, start: &clusterapi.ExecStart{},
	}
	if code, err := session.run(ctx); code != 0 || err != nil {
		t.Errorf("got %d, %v; want to be told of the new size", code, err)
	}
}
