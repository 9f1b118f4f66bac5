package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"os/exec"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// echoKind is a way of getting bytes back from another process.
type echoKind string

// The kinds.
const (
	echoFray   echoKind = "fray"   // an actor, over frames
	echoGRPC   echoKind = "grpc"   // a unary call of grpc-go, with nothing of ours but the message
	echoSocket echoKind = "socket" // TCP alone
)

// maxEcho is the limit on a message, in bytes, of both sides and every kind.
const maxEcho = 64 << 20

// echoActor is an actor in Go.
type echoActor struct{}

// Echo returns what it is given.
func (echoActor) Echo(_ context.Context, data []byte) ([]byte, error) { return data, nil }

// Count streams the numbers below n.
func (echoActor) Count(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// serveEcho serves a kind until in is closed; its address goes to out.
func serveEcho(ctx context.Context, kind echoKind, in io.Reader, out io.Writer) error {
	address, stop, err := startEcho(ctx, kind)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := fmt.Fprintln(out, address); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

func startEcho(ctx context.Context, kind echoKind) (address string, stop func(), err error) {
	if kind == echoFray {
		s, err := host.New(host.Config{MaxMessageBytes: maxEcho})
		if err != nil {
			return "", nil, err
		}
		if _, err := s.Register("echo", echoActor{}, host.Options{}); err != nil {
			return "", nil, err
		}
		err = s.Start(ctx)
		return s.Address(), func() { _ = s.Shutdown(ctx) }, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	if kind == echoSocket {
		go serveSocket(listener)
		return listener.Addr().String(), func() { _ = listener.Close() }, nil
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxEcho), grpc.MaxSendMsgSize(maxEcho))
	wire.RegisterActorsServer(server, bareEcho{})
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), server.Stop, nil
}

type bareEcho struct {
	wire.UnimplementedActorsServer
}

func (bareEcho) Invoke(_ context.Context, c *wire.Call) (*wire.Reply, error) {
	return &wire.Reply{Result: c.GetArgs()}, nil
}

// InvokeStream sends as many items as are measured.
func (bareEcho) InvokeStream(_ *wire.Call, out grpc.ServerStreamingServer[wire.Reply]) error {
	for i := range streamItems {
		if err := out.Send(&wire.Reply{Result: []byte{byte(i)}}); err != nil {
			return err
		}
	}
	return nil
}

// serveSocket gives back what it reads, as soon as it has it.
func serveSocket(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, 1<<20))
		}()
	}
}

// dialEcho returns a function that sends bytes and gets them back. It may be
// called by many goroutines at once, except for a socket's.
func dialEcho(ctx context.Context, kind echoKind, address string) (call func([]byte) error, stop func(), err error) {
	switch kind {
	case echoFray:
		names, err := resolver.NewFixed(address)
		if err != nil {
			return nil, nil, err
		}
		client := actorrpc.NewClient(names, actorrpc.Config{MaxMessageBytes: maxEcho})
		handle, err := client.Lookup(ctx, "echo")
		return func(data []byte) error {
			got, err := actorrpc.Call[[]byte](ctx, handle, "echo", data)
			return sameSize(len(got), len(data), err)
		}, func() { _ = client.Close() }, err
	case echoGRPC:
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxEcho), grpc.MaxCallSendMsgSize(maxEcho)))
		if err != nil {
			return nil, nil, err
		}
		client := wire.NewActorsClient(conn)
		return func(data []byte) error {
			got, err := client.Invoke(ctx, &wire.Call{Actor: "echo", Method: "echo", Args: data})
			return sameSize(len(got.GetResult()), len(data), err)
		}, func() { _ = conn.Close() }, nil
	case echoSocket:
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return nil, nil, err
		}
		back := make([]byte, maxEcho)
		return func(data []byte) error {
			if _, err := conn.Write(data); err != nil {
				return err
			}
			_, err := io.ReadFull(conn, back[:len(data)])
			return err
		}, func() { _ = conn.Close() }, nil
	}
	return nil, nil, fmt.Errorf("there is no echo of kind %q", kind)
}

func sameSize(got, want int, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("%d bytes came back of %d", got, want)
	}
	return err
}

// served is a process that serves and has printed its address.
type served struct {
	address string
	cmd     *exec.Cmd
	in      io.Closer
}

// serveApart starts a command that prints its address and serves until its input is closed.
func (b *bench) serveApart(command ...string) (*served, error) {
	cmd := exec.CommandContext(b.ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = b.root, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &served{cmd: cmd, in: in}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("%v printed no address: %w", command, err)
	}
	s.address = strings.TrimSpace(line)
	return s, nil
}

func (s *served) stop() {
	_ = s.in.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
