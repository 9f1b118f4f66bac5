package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// The stream that is measured, and how fast it is to be.
const (
	streamItems      = 10_000
	streamTurns      = 9
	goStreamRate     = 100_000 // items a second
	pythonStreamRate = 20_000
)

// streams measures a stream of small items: from Go to Go beside server streaming of grpc-go in the same run,
// from Python to Python, and between them.
func (b actorBench) streams() error {
	ours, err := b.streamFrom(echoFray, b.self, oneArg, oneEcho, string(echoFray), "")
	if err != nil {
		return err
	}
	theirs, err := b.streamFrom(echoGRPC, b.self, oneArg, oneEcho, string(echoGRPC), "")
	if err != nil {
		return err
	}
	b.row("a stream of 10,000 small items, Go to Go", perSecond(ours), perSecond(goStreamRate), "grpc-go, a message an item: "+perSecond(theirs))
	python, err := b.python()
	if err != nil {
		return err
	}
	program := filepath.Join(b.root, "bench", "actors", "streams.py")
	if ours, err = b.streamFrom(echoFray, python, program, "serve"); err != nil {
		return err
	}
	b.row("a stream of 10,000 small items, Python to Go", perSecond(ours), "-", "")
	rows, err := b.tellings(python, program)
	if err != nil {
		return err
	}
	b.row("a stream of 10,000 small items, Python to Python", perSecond(rows["generator"]), perSecond(pythonStreamRate), "")
	b.row("a stream of an async generator, Python to Python", perSecond(rows["async generator"]), "-", "")
	return nil
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }

// streamFrom is the median rate of streams from a server that a command starts, in items a second.
func (b actorBench) streamFrom(kind echoKind, command ...string) (float64, error) {
	server, err := b.serveApart(command...)
	if err != nil {
		return 0, err
	}
	defer server.stop()
	loop := b.loopFray
	if kind == echoGRPC {
		loop = b.loopGRPC
	}
	var rates []float64
	err = loop(server.address, func(count func() (int, error)) error {
		for range streamTurns {
			began := time.Now()
			n, err := count()
			if err == nil && n != streamItems {
				err = fmt.Errorf("%d items came of %d", n, streamItems)
			}
			if err != nil {
				return err
			}
			rates = append(rates, streamItems/time.Since(began).Seconds())
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("a stream of %s: %w", kind, err)
	}
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

// loopFray passes on what counts the items of one stream.
func (b actorBench) loopFray(address string, with func(count func() (int, error)) error) error {
	names, err := resolver.NewFixed(address)
	if err != nil {
		return err
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	defer func() { _ = client.Close() }()
	h, err := client.Lookup(b.ctx, "echo")
	if err != nil {
		return err
	}
	return with(func() (n int, err error) {
		for _, err := range actorrpc.Stream[int](b.ctx, h, "count", streamItems) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
}

// loopGRPC is the same of a bare stream of grpc-go.
func (b actorBench) loopGRPC(address string, with func(count func() (int, error)) error) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return with(func() (n int, err error) {
		stream, err := wire.NewActorsClient(conn).InvokeStream(b.ctx, &wire.Call{})
		if err != nil {
			return 0, err
		}
		for n < streamItems {
			if _, err := stream.Recv(); err != nil {
				return n, err
			}
			n++
		}
		_, _ = stream.Recv() // its end
		return n, nil
	})
}
