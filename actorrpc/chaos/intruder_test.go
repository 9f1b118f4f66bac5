package chaos

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/wire"
)

const (
	intrusionEvery = 100 * time.Millisecond
	intrusionLasts = 5 * time.Second // at most: what it calls may stand still
)

// intruder is a client that has not proven the namespace, and sends servers a pickle with an effect.
type intruder struct {
	world    *world
	other    *tls.Config // of another namespace; nil: plain text
	rejected int         // answers that its call was rejected
	shut     int         // connections that were closed before an answer
}

// exploding is the file that is there once the intruder's pickle has been read.
func (w *world) exploding() string { return filepath.Join(w.dir, "exploded") }

// explosion is a pickle that makes a directory when it is read.
func explosion(path string) []byte { return fmt.Appendf(nil, "cos\nmkdir\n(S'%s'\ntR.", path) }

func newIntruder(w *world) (*intruder, error) {
	i := &intruder{world: w}
	if w.identity == "" {
		return i, nil
	}
	id, err := actorrpc.LoadIdentity(w.stranger)
	if err != nil {
		return nil, err
	}
	i.other = id.ClientTLS()
	i.other.VerifyConnection = nil // it goes on with servers of any namespace
	return i, nil
}

// intrude tries all servers in turn until the context ends.
func (i *intruder) intrude(ctx context.Context) {
	for n := 0; idle(ctx, intrusionEvery); n++ {
		slot := i.world.slots[n%len(i.world.slots)]
		v := slot.server()
		if v == nil {
			continue
		}
		secure := i.other != nil && n/len(i.world.slots)%2 == 0
		reply, err := i.call(v.address, actorName(n%len(i.world.slots)), secure)
		switch {
		case errors.Is(err, errNotReached), errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case err != nil:
			i.shut++
			continue
		}
		if e := reply.GetError(); e == nil || e.GetRan() {
			i.world.problem("%s answered an intruder: %v", v.attempt, reply)
		}
		i.rejected++
	}
}

// errNotReached is the error of a server that was not there to close the connection.
var errNotReached = errors.New("no server listens")

// call sends a pickle, as one would who has proven the namespace.
func (i *intruder) call(address, actor string, secure bool) (*wire.Reply, error) {
	c, err := net.DialTimeout("tcp", address, intrusionLasts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotReached, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(intrusionLasts)); err != nil {
		return nil, err
	}
	if secure {
		c = tls.Client(c, i.other)
	}
	if _, err := c.Write([]byte(wire.Preface)); err != nil {
		return nil, err
	}
	proof := make([]byte, 40)
	_, _ = rand.Read(proof)
	own := &wire.Handshake{
		Version: wire.Version, Peer: rand.Text(), Namespace: namespace, MaxMessageBytes: wire.MaxFrame, Language: "python",
		Pickle: true, PickleCreated: true, Proof: proof,
	}
	frames := wire.NewConn(c, wire.MaxFrame)
	if err := frames.Send(&wire.Frame{Kind: &wire.Frame_Handshake{Handshake: own}}, nil, nil); err != nil {
		return nil, err
	}
	call := &wire.Call{Seq: 1, Actor: actor, Method: "keep", Codec: wire.Codec_CODEC_PICKLE, Args: explosion(i.world.exploding())}
	if err := frames.Send(&wire.Frame{Kind: &wire.Frame_Call{Call: call}}, nil, nil); err != nil {
		return nil, err
	}
	for {
		f, _, err := frames.Receive()
		if err != nil {
			return nil, err
		}
		if f.GetReply() != nil {
			return f.GetReply(), nil
		}
		if f.GetClose() != nil {
			return nil, errors.New("the server closed the connection")
		}
	}
}

// report notes whether a pickle was read, and that some were sent.
func (i *intruder) report(t *testing.T) {
	t.Helper()
	t.Logf("pickles of an intruder: %d rejected, %d connections closed before", i.rejected, i.shut)
	if _, err := os.Stat(i.world.exploding()); !os.IsNotExist(err) {
		i.world.problem("a server has read the pickle of an intruder (%v)", err)
	}
	if i.other == nil && i.rejected == 0 || i.other != nil && i.shut == 0 {
		i.world.problem("no server has had a pickle of an intruder")
	}
}

func TestThePickleOfTheIntruderHasItsEffect(t *testing.T) {
	w := newWorld(t)
	if w.python == "" {
		t.Skip("there is no Python")
	}
	cmd := exec.Command(w.python, "-c", "import pickle, sys; pickle.load(sys.stdin.buffer)")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer in.Close()
		_, _ = in.Write(explosion(w.exploding()))
	}()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(w.exploding()); err != nil {
		t.Error(err)
	}
}
