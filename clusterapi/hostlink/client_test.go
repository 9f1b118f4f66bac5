package hostlink

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/state"
)

// A host is live as long as what it sends is acknowledged, so that the store's way goes on within
// ten seconds. The stream goes on until nothing was acknowledged for long.
func TestHostIsLiveWhileAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(Config{Log: slog.New(slog.DiscardHandler)})
		var assigned []state.Generation
		h := c.Host(HostConfig{
			Slice: "a", Assignment: func() state.Generation { return 3 },
			Assigned: func(object state.Generation, _ []byte) { assigned = append(assigned, object) },
		})
		number := uint32(1)
		send := func(seq uint64) *clusterapi.HostMessage {
			t.Helper()
			h.Report(state.HostReport{Slice: "a", Boot: "b", Seq: seq, Address: "x"})
			messages := c.take()
			if len(messages) != 1 {
				t.Fatalf("got messages %v, want one", messages)
			}
			return messages[0]
		}
		c.begin(&path{})
		if m := send(1); m.GetHello().GetSlice() != "a" || m.GetHello().GetAssignment() != 3 || m.GetReport().GetBase() != 0 || m.GetReport().GetFacts().GetAddress() != "x" {
			t.Errorf("the first message is %v, want a hello and a whole report", m)
		}
		if h.Live() {
			t.Error("the host is live before anything was acknowledged")
		}
		c.heard(&clusterapi.ControllerMessage{Number: number, Received: 1, Welcome: &clusterapi.HostWelcome{Heartbeat: 60_000, Spread: 100}})
		if !h.Live() || h.Heartbeat() > longestHeartbeat {
			t.Errorf("live: %t, a heartbeat each %s", h.Live(), h.Heartbeat())
		}
		time.Sleep(h.Heartbeat())
		if m := send(2); !IsHeartbeat(m.GetReport()) || m.Hello != nil {
			t.Errorf("got %v, want a heartbeat", m)
		}
		time.Sleep(10*time.Second - h.Heartbeat())
		if h.Live() || c.unacknowledged() {
			t.Errorf("after 10 s without an acknowledgement the host is live: %t, the stream is given up: %t", h.Live(), c.unacknowledged())
		}
		time.Sleep(h.Heartbeat() + time.Second)
		if !c.unacknowledged() {
			t.Errorf("the stream goes on after %s without an acknowledgement", hungPatience)
		}
		c.heard(&clusterapi.ControllerMessage{Number: number, Received: 1}) // late
		if h.Live() {
			t.Error("an acknowledgement of what was sent long ago makes the host live")
		}

		c.begin(&path{}) // another stream
		h.Report(state.HostReport{Slice: "a", Boot: "b", Seq: 2, Notice: "of an earlier moment"})
		if m := c.take(); len(m) != 1 || m[0].GetHello() == nil || m[0].GetReport().GetSeq() != 2 || m[0].GetReport().GetNotice() != nil {
			t.Errorf("got %v, want a hello and the newest report", m)
		}
		c.heard(&clusterapi.ControllerMessage{Number: number, Received: 2, Whole: true, Assignment: &clusterapi.HostAssignment{Object: 5}})
		if m := c.take(); !h.Live() || len(m) != 1 || m[0].GetReport().GetBase() != 0 {
			t.Errorf("live: %t; asked for a whole report it sends %v", h.Live(), m)
		}
		push := c.heard(&clusterapi.ControllerMessage{Number: number, Assignment: &clusterapi.HostAssignment{Object: 5}})
		if push == nil {
			t.Fatal("an assignment goes to no host")
		}
		push(5, nil)
		if c.heard(&clusterapi.ControllerMessage{Number: 9, Assignment: &clusterapi.HostAssignment{Object: 6}}) != nil || len(assigned) != 1 {
			t.Errorf("assigned %v, want 5 alone", assigned)
		}
		c.heard(&clusterapi.ControllerMessage{Number: number, Rejected: "no"})
		h.Report(state.HostReport{Slice: "a", Seq: 9})
		if m := c.take(); h.Live() || len(m) > 0 {
			t.Errorf("rejected, it is live: %t, and sends %v", h.Live(), m)
		}
	})
}

// A host without a token says nothing, and does so once it has one.
func TestHostWaitsForItsToken(t *testing.T) {
	c := NewClient(Config{Log: slog.New(slog.DiscardHandler)})
	missing := errors.New("not yet")
	h := c.Host(HostConfig{Slice: "p", Assignment: func() state.Generation { return 0 }, Token: func() (string, error) { return "own", missing }})
	h.Report(state.HostReport{Seq: 1})
	if m := c.take(); len(m) > 0 {
		t.Errorf("without a token it sends %v", m)
	}
	missing = nil
	h.Report(state.HostReport{Seq: 2})
	if m := c.take(); len(m) != 1 || m[0].GetHello().GetToken() != "own" {
		t.Errorf("with a token it sends %v", m)
	}
	h.Close()
	if m := c.take(); len(m) != 1 || !m[0].GetGone() {
		t.Errorf("when it leaves, it sends %v", m)
	}
}

// conn is a connection whose streams fail with an error, or hang.
type conn struct {
	Conn
	err    error // nil: streams hang
	closed *int
}

func (c conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return hanging{ctx: ctx}, c.err
}

func (c conn) Close() error {
	*c.closed++
	return nil
}

// hanging is a stream by which nothing is answered.
type hanging struct {
	grpc.ClientStream
	ctx context.Context
}

func (hanging) SendMsg(any) error { return nil }

func (h hanging) RecvMsg(any) error {
	<-h.ctx.Done()
	return status.FromContextError(h.ctx.Err()).Err()
}

// TestConnectionsAreKeptWhileTheControllerIsLate: not those that hang, by which another one that
// leads would never be found.
func TestConnectionsAreKeptWhileTheControllerIsLate(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		kept bool
	}{
		{"not available", status.Error(codes.Unavailable, "this controller does not lead yet"), true},
		{"rejected", status.Error(codes.PermissionDenied, "this is for hosts"), false},
		{"hangs", nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			dialled, closed := 0, 0
			c := NewClient(Config{Log: slog.New(slog.DiscardHandler), Dial: func(context.Context) (Conn, error) {
				dialled++
				return conn{err: test.err, closed: &closed}, nil
			}})
			h := c.Host(HostConfig{Slice: "a", Assignment: func() state.Generation { return 0 }})
			h.Report(state.HostReport{Slice: "a", Seq: 1})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c.Run(ctx)
			}()
			time.Sleep(time.Minute)
			synctest.Wait()
			if kept := dialled == 1; kept != test.kept {
				t.Errorf("%s: connected %d times in a minute, want once: %t", test.name, dialled, test.kept)
			}
			cancel()
			<-ended
			if closed != dialled {
				t.Errorf("%s: %d of %d connections are closed", test.name, closed, dialled)
			}
		})
	}
}
