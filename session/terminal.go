package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/terminal"
)

// execSession is a command that runs elsewhere, with this process as its
// keyboard and screen.
type execSession struct {
	terminal *terminal.Terminal
	link     *hostLink
	query    Query
	start    *clusterapi.ExecStart
	verb     verb // "": exec

	stream  execStream
	sending sync.Mutex
}

// run returns the command's exit code.
func (s *execSession) run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH) // before the size is read, so that no change is lost
	defer signal.Stop(resized)
	var err error
	if s.stream, err = s.link.exec(ctx); err != nil {
		return 0, s.failure(err)
	}
	if s.query.Tty {
		s.start.Term, s.start.Size = os.Getenv("TERM"), s.size()
	}
	if err := s.stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Start{Start: s.start}}); err != nil && !errors.Is(err, io.EOF) {
		return 0, s.failure(err)
	}
	restore, err := s.raw()
	if err != nil {
		return 0, err
	}
	defer restore()
	go s.resizes(ctx, resized)
	interrupted := s.signals(ctx, cancel)
	go s.input()
	code, err := s.output()
	if interrupted() && status.Code(err) == codes.Canceled {
		return terminal.ExitInterrupted, nil
	}
	return code, s.failure(err)
}

// failure is the message of a host or controller, without gRPC's prefix.
func (s *execSession) failure(err error) error {
	if err == nil {
		return nil
	}
	if reply, ok := status.FromError(err); ok {
		return &replyError{of: cmp.Or(s.verb, execVerb), reply: reply}
	}
	return fmt.Errorf("%s: %w", cmp.Or(s.verb, execVerb), err)
}

// replyError is what a host or controller answers instead of carrying a call out.
type replyError struct {
	of    verb
	reply *status.Status
}

func (e *replyError) Error() string { return string(e.of) + ": " + e.reply.Message() }

// raw hands keys on as they are typed, where the command has a terminal and so
// has fray.
func (s *execSession) raw() (restore func(), err error) {
	keyboard, ok := s.terminal.Stdin.(*os.File)
	if !s.query.Tty || !ok || !terminal.IsTerminal(keyboard) {
		return func() {}, nil
	}
	before, err := term.MakeRaw(int(keyboard.Fd()))
	if err != nil {
		return nil, fmt.Errorf("prepare the terminal: %w", err)
	}
	return func() { _ = term.Restore(int(keyboard.Fd()), before) }, nil
}

// size is that of fray's own terminal, nil if it has none.
func (s *execSession) size() *clusterapi.WindowSize {
	for _, stream := range []any{s.terminal.Stdout, s.terminal.Stdin} {
		if f, ok := stream.(*os.File); ok {
			if columns, rows, err := term.GetSize(int(f.Fd())); err == nil {
				return &clusterapi.WindowSize{Rows: uint32(rows), Columns: uint32(columns)}
			}
		}
	}
	return nil
}

// signals hands signals on. The second Ctrl-C ends the call, whatever the
// command makes of the first; whether one came is what is returned.
func (s *execSession) signals(ctx context.Context, cancel context.CancelFunc) (interrupted func() bool) {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	ended := make(chan struct{})
	var once sync.Once
	go func() {
		defer signal.Stop(caught)
		asked := false
		for {
			select {
			case <-ctx.Done():
				return
			case sig := <-caught:
				number, ok := sig.(syscall.Signal)
				switch {
				case !ok:
				case asked:
					once.Do(func() { close(ended) })
					cancel()
				default:
					asked = true
					// Not waited for: a command that reads nothing may hold it up.
					go s.send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Signal{Signal: int32(number)}})
				}
			}
		}
	}()
	return func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
}

// resizes hands on the sizes that this process's terminal is given; where sending
// is held up, only the newest.
func (s *execSession) resizes(ctx context.Context, resized <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-resized:
		}
		if size := s.size(); s.query.Tty && size != nil {
			s.send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Resize{Resize: size}})
		}
	}
}

// send passes a message to the command; false when the call is over, of which
// output hears more.
func (s *execSession) send(m *clusterapi.ExecRequest) bool {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.stream.Send(m) == nil
}

// input hands on what is typed, until its end or that of the call.
func (s *execSession) input() {
	closed := &clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_StdinClosed{StdinClosed: true}}
	if !s.query.Interactive {
		s.send(closed)
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := s.terminal.Stdin.Read(buffer)
		if n > 0 && !s.send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: buffer[:n]}}) {
			return
		}
		if err != nil {
			s.send(closed)
			return
		}
	}
}

// output prints what the command writes, and returns its exit code.
func (s *execSession) output() (int, error) {
	for {
		m, err := s.stream.Recv()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("the connection ended before the command did")
		}
		if err != nil {
			return 0, err
		}
		switch kind := m.GetKind().(type) {
		case *clusterapi.ExecResponse_Stdout:
			_, err = s.terminal.Stdout.Write(kind.Stdout)
		case *clusterapi.ExecResponse_Stderr:
			_, err = s.terminal.Stderr.Write(kind.Stderr)
		case *clusterapi.ExecResponse_ExitCode:
			return int(kind.ExitCode), nil
		}
		if err != nil {
			return 0, err
		}
	}
}
