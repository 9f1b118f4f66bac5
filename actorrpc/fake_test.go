package actorrpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// world has the processes of a test, by address. Connections are pipes: what the
// other end did not read was not written.
type world struct {
	t         testing.TB
	mu        sync.Mutex
	processes map[string]*process
	dials     int
	born      int
	executed  []int // arguments of the calls that ran, anywhere, in order
}

func newWorld(t testing.TB) *world { return &world{t: t, processes: map[string]*process{}} }

func (w *world) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dials++
	p := w.processes[address]
	if p == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if p.dark {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return nil, ctx.Err()
	}
	ours, theirs := net.Pipe()
	p.conns = append(p.conns, theirs)
	go p.serve(theirs)
	return ours, nil
}

// start replaces whatever is at an address by a new process.
func (w *world) start(address string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.born++
	p := &process{
		world: w, id: fmt.Sprintf("process-%d", w.born), incarnation: fmt.Sprintf("actor-%d", w.born), actor: "counter",
		ledgers: map[string]*ledger{}, held: map[uint64]*wire.Frame{}, hello: &wire.Handshake{Version: wire.Version},
	}
	p.hello.Peer = p.id
	w.processes[address] = p
	return p
}

// kill ends the process at an address, with its connections.
func (w *world) kill(address string) {
	w.mu.Lock()
	p := w.processes[address]
	delete(w.processes, address)
	var conns []net.Conn
	if p != nil {
		conns, p.conns = p.conns, nil
	}
	w.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

func (w *world) ran() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.executed)
}

// process is a server with one actor, whose method "add" returns its argument.
type process struct {
	world       *world
	id          string
	incarnation string
	actor       string
	hello       *wire.Handshake
	dark        bool            // it takes no connections, without an error
	methods     []*wire.Method  // nil: questions for them are not answered
	breaks      map[int]*broken // by argument, once each
	answer      func(c *wire.Call) *wire.Reply
	raw         func(c net.Conn) // instead of all after the preface
	mute        bool             // answers nothing

	conns   []net.Conn
	ledgers map[string]*ledger
	calls   []*wire.Call

	cancelled int
	held      map[uint64]*wire.Frame // replies of a mute process
}

// point is where a connection breaks.
type point string

const (
	beforeFrame point = "before the frame"
	inFrame     point = "in the frame"
	afterFrame  point = "after the frame"
	beforeReply point = "before the reply"
)

// broken is what happens once, at the call of one argument.
type broken struct {
	at   point
	then func()
}

// ledger is what a process knows of one caller.
type ledger struct {
	highest uint64
	replies map[uint64]*wire.Reply
}

func (p *process) serve(c net.Conn) {
	defer c.Close()
	preface := make([]byte, len(wire.Preface))
	if _, err := io.ReadFull(c, preface); err != nil || string(preface) != wire.Preface {
		return
	}
	if p.raw != nil {
		p.raw(c)
		return
	}
	f, err := readFrame(c, "")
	if err != nil {
		return
	}
	caller := f.GetHandshake().GetPeer()
	if writeFrame(c, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: p.hello}}) != nil {
		return
	}
	for calls := 1; ; {
		less, then := p.interrupt(calls)
		f, err := readFrame(c, less)
		if errors.Is(err, errBroken) {
			then()
			return
		}
		if err != nil || !p.handle(c, caller, f) {
			return
		}
		if f.GetCall() != nil {
			calls++
		}
	}
}

var errBroken = errors.New("broken on purpose")

// interrupt says whether the connection is to break before or in the next frame:
// that of the call of this number, if nothing else was sent.
func (p *process) interrupt(call int) (point, func()) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	b := p.breaks[call]
	if b == nil || b.at != beforeFrame && b.at != inFrame {
		return "", nil
	}
	delete(p.breaks, call)
	return b.at, b.then
}

func (p *process) handle(c net.Conn, caller string, f *wire.Frame) bool {
	var out *wire.Frame
	switch kind := f.GetKind().(type) {
	case *wire.Frame_Call:
		r := p.call(caller, kind.Call)
		if r == nil {
			return false
		}
		out = &wire.Frame{Kind: &wire.Frame_Reply{Reply: r}}
	case *wire.Frame_Ping:
		out = &wire.Frame{Kind: &wire.Frame_Pong{Pong: &wire.Pong{Id: kind.Ping.GetId()}}}
	case *wire.Frame_ListMethods:
		if p.methods == nil {
			return true
		}
		out = &wire.Frame{Kind: &wire.Frame_Methods{Methods: &wire.ListMethodsResponse{Id: kind.ListMethods.GetId(), Methods: p.methods, Incarnation: p.incarnation}}}
	case *wire.Frame_Cancel:
		p.world.mu.Lock()
		p.cancelled++
		p.world.mu.Unlock()
		return true
	default:
		return true
	}
	p.world.mu.Lock()
	mute := p.mute
	if mute {
		p.held[out.GetReply().GetSeq()] = out
	}
	p.world.mu.Unlock()
	return mute || writeFrame(c, out) == nil
}

// release sends a reply that was withheld.
func (p *process) release(seq uint64) {
	p.world.mu.Lock()
	f, conn := p.held[seq], p.conns[0]
	p.world.mu.Unlock()
	if err := writeFrame(conn, f); err != nil {
		p.world.t.Errorf("send the reply to call %d: %v", seq, err)
	}
}

// call is the reply to a call, nil if the connection breaks.
func (p *process) call(caller string, c *wire.Call) *wire.Reply {
	w := p.world
	w.mu.Lock()
	p.calls = append(p.calls, c)
	n := argument(w.t, c)
	l := p.ledgers[caller]
	if l == nil {
		l = &ledger{replies: map[uint64]*wire.Reply{}}
		p.ledgers[caller] = l
	}
	b := p.breaks[n]
	delete(p.breaks, n)
	if b != nil && b.at == afterFrame {
		w.mu.Unlock()
		b.then()
		return nil
	}
	var r *wire.Reply
	known := l.replies[c.GetSeq()]
	switch {
	case known != nil:
		r = known
	case c.GetSeq() <= l.highest:
		r = &wire.Reply{Error: &wire.Error{Code: wire.Code_CODE_MAYBE_EXECUTED, Ran: true, Message: "forgotten"}}
	default:
		l.highest = c.GetSeq()
		r = p.run(c, n)
		l.replies[c.GetSeq()] = r
	}
	for seq := range l.replies {
		if seq <= c.GetAcked() {
			delete(l.replies, seq)
		}
	}
	r = proto.CloneOf(r) // the first may be on its way still
	r.Seq = c.GetSeq()
	w.mu.Unlock()
	if b != nil && b.at == beforeReply {
		b.then()
		return nil
	}
	return r
}

// run needs the world's lock.
func (p *process) run(c *wire.Call, n int) *wire.Reply {
	if p.answer != nil {
		if r := p.answer(c); r != nil {
			return r
		}
	}
	if c.GetActor() != p.actor {
		return &wire.Reply{Error: rpcerror.UnknownActorOf(c.GetActor(), []string{p.actor}).Wire()}
	}
	if c.GetIncarnation() != "" && c.GetIncarnation() != p.incarnation {
		return &wire.Reply{Error: rejectionOf(rpcerror.CodeStale)}
	}
	p.world.executed = append(p.world.executed, n)
	data, _, err := codec.EncodeResult(codec.Msgpack, n)
	if err != nil {
		p.world.t.Error(err)
	}
	return &wire.Reply{Result: data, Incarnation: p.incarnation}
}

func rejectionOf(code rpcerror.Code) *wire.Error {
	return (&rpcerror.Error{Code: code, Message: "not now"}).Wire()
}

// argument is the one int of a call.
func argument(t testing.TB, c *wire.Call) int {
	args, err := codec.DecodeArgs(codec.Kind(c.GetCodec()), c.GetArgs(), c.GetBuffers(), 0)
	if err != nil {
		t.Errorf("decode a call: %v", err)
		return -1
	}
	if len(args.Positional) == 0 {
		return 0
	}
	n, _ := args.Positional[0].(int64)
	return int(n)
}

// readFrame reads no byte more than the frame's. For a break it reads less: nothing,
// or all but the last byte.
func readFrame(c net.Conn, less point) (*wire.Frame, error) {
	if less == beforeFrame {
		time.Sleep(time.Millisecond) // until the client stands there writing
		return nil, errBroken
	}
	var prefix [8]byte
	if _, err := io.ReadFull(c, prefix[:]); err != nil {
		return nil, err
	}
	head := binary.BigEndian.Uint32(prefix[:])
	all := make([]byte, head+binary.BigEndian.Uint32(prefix[4:]))
	if less == inFrame {
		if _, err := io.ReadFull(c, all[:len(all)-1]); err != nil {
			return nil, err
		}
		return nil, errBroken
	}
	if _, err := io.ReadFull(c, all); err != nil {
		return nil, err
	}
	f := &wire.Frame{}
	return f, proto.Unmarshal(all[:head], f)
}

func writeFrame(c net.Conn, f *wire.Frame) error {
	data, err := proto.Marshal(f)
	if err != nil {
		return err
	}
	var prefix [8]byte
	binary.BigEndian.PutUint32(prefix[:], uint32(len(data)))
	_, err = c.Write(append(prefix[:], data...))
	return err
}

// client calls the world's processes.
func (w *world) client(r resolver.Resolver, config Config) *Client {
	c := NewClient(r, config)
	c.transports.dial = w.dial
	w.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return c
}

// ran is whether a call's error says that it may have run.
func ran(err error) bool {
	e, ok := errors.AsType[*rpcerror.Error](err)
	return ok && e.Ran
}
