package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/clusterapi"
)

const (
	ordinaryTimeout = 60 * time.Second
	largePayload    = 200 << 10 // bytes, so that connections are cut within frames
	longest         = 20_000    // microseconds that a call takes, so that servers die within calls
)

// calling is a process that calls counters, for several callers.
type calling struct {
	orders   orders
	handles  []actorrpc.Handle
	outcomes *os.File
	received *os.File
	stop     chan struct{}
}

// caller makes calls, one after the other or many at once, and numbers them.
type caller struct {
	*calling
	name   string
	random *rand.Rand
	seq    int
}

// call calls until it is told to stop.
func call(in io.Reader, out io.Writer) error {
	o, err := readOrders()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+os.Getenv("FRAY_CLUSTER_ADDRESS"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	names := resolver.NewCluster(clusterapi.NewMetadataClient(conn), namespace)
	defer func() { _ = names.Close() }()
	config := actorrpc.Config{
		Namespace: namespace, Keepalive: actorrpc.Keepalive{Every: seconds(o.Keepalive), Patience: seconds(o.Patience)},
	}
	if file := os.Getenv("FRAY_ACTOR_IDENTITY"); file != "" {
		if config.Identity, err = actorrpc.LoadIdentity(file); err != nil {
			return err
		}
	}
	client := actorrpc.NewClient(names, config)
	defer func() { _ = client.Close() }()
	c := &calling{orders: o, stop: make(chan struct{})}
	if c.outcomes, err = appending(o.Outcomes); err != nil {
		return err
	}
	defer c.outcomes.Close()
	if c.received, err = appending(o.Received); err != nil {
		return err
	}
	defer c.received.Close()
	for _, name := range o.Actors {
		h, err := client.WaitFor(context.Background(), name)
		if err != nil {
			return err
		}
		c.handles = append(c.handles, h)
	}
	return c.obey(in, out)
}

// obey carries out orders.
func (c *calling) obey(in io.Reader, out io.Writer) error {
	var running sync.WaitGroup
	calm := &caller{calling: c, name: c.orders.Callers[0] + ".calm"}
	for s := bufio.NewScanner(in); s.Scan(); {
		switch s.Text() {
		case "calm": // one call of each actor
			for _, h := range c.handles {
				calm.single(h, nil, ordinaryTimeout)
			}
			fmt.Fprintln(out, "calm", used())
		case "go":
			for i, name := range c.orders.Callers {
				one := &caller{calling: c, name: name, random: rand.New(rand.NewPCG(c.orders.Seed, uint64(i)))}
				running.Go(one.run)
			}
			fmt.Fprintln(out, "going")
		case "stop":
			close(c.stop)
			running.Wait()
			fmt.Fprintln(out, "stopped")
		case "usage":
			fmt.Fprintln(out, "usage", used())
		case "quit":
			return nil
		default:
			return fmt.Errorf("order %q: there is no such", s.Text())
		}
	}
	return nil
}

// run calls in all ways that there are.
func (c *caller) run() {
	for {
		n := c.random.IntN(len(c.handles))
		h := c.handles[n]
		var payload []byte
		if c.random.IntN(16) == 0 {
			payload = make([]byte, 1+c.random.IntN(largePayload))
		}
		switch way := c.random.IntN(24); {
		case way < 12:
			c.single(h, payload, ordinaryTimeout)
		case way < 14:
			c.pipeline(h, 2+c.random.IntN(30), ordinaryTimeout)
		case way < 16:
			c.retried(h)
		case way < 17:
			c.pipeline(h, 2+c.random.IntN(30), c.short())
		case way < 19:
			c.single(h, payload, c.short())
		case way < 20:
			c.cancelled(h)
		case way < 23:
			c.stream(n)
		default:
			c.streams()
		}
		select {
		case <-time.After(time.Duration(c.random.IntN(20)) * time.Millisecond):
		case <-c.stop:
			return
		}
	}
}

// takes is how long a call is to take, in microseconds: most no time, so that many are made.
func (c *caller) takes() int {
	if c.random == nil || c.random.IntN(4) > 0 {
		return 0
	}
	return c.random.IntN(longest)
}

// short is a timeout that some calls do not keep.
func (c *caller) short() time.Duration {
	return time.Duration(1+c.random.IntN(300)) * time.Millisecond
}

func (c *caller) single(h actorrpc.Handle, payload []byte, timeout time.Duration) {
	c.seq++
	began := time.Now()
	text, err := actorrpc.Call[string](context.Background(), h, "add", c.name, c.seq, payload, c.takes(), actorrpc.RPCOptions{Timeout: timeout})
	c.note(c.seq, timeout, began, text, err)
}

// retried makes a call that may fail, and run again as often as its retries allow.
func (c *caller) retried(h actorrpc.Handle) {
	c.seq++
	began := time.Now()
	o := actorrpc.RPCOptions{Timeout: ordinaryTimeout, Retries: 1 + c.random.IntN(4), RetryErrors: &actorrpc.ErrorFilter{}}
	if c.random.IntN(2) == 0 {
		o.RetryErrors.Types = []string{"chaos.flakyError", "__main__.FlakyError"}
	}
	text, err := actorrpc.Call[string](context.Background(), h, "flaky", c.name, c.seq, c.takes(), c.random.IntN(o.Retries+2), o)
	c.noteRetried(c.seq, o, began, text, err)
}

// pipeline has many calls on the way at once.
func (c *caller) pipeline(h actorrpc.Handle, n int, timeout time.Duration) {
	began := time.Now()
	var futures []*actorrpc.Future[string]
	for range n {
		c.seq++
		futures = append(futures, actorrpc.Go[string](context.Background(), h, "add", c.name, c.seq, nil, c.takes(), actorrpc.RPCOptions{Timeout: timeout}))
	}
	for i, f := range futures {
		text, err := f.Result(context.Background())
		c.note(c.seq-n+1+i, timeout, began, text, err)
	}
}

// cancelled gives a call up after a moment.
func (c *caller) cancelled(h actorrpc.Handle) {
	c.seq++
	began := time.Now()
	f := actorrpc.Go[string](context.Background(), h, "add", c.name, c.seq, nil, c.takes(), actorrpc.RPCOptions{Timeout: ordinaryTimeout})
	select {
	case <-f.Done():
	case <-time.After(time.Duration(c.random.IntN(20_000)) * time.Microsecond):
	}
	f.Cancel()
	text, err := f.Result(context.Background())
	c.note(c.seq, ordinaryTimeout, began, text, err)
}

// note writes what became of a call.
func (c *caller) note(seq int, timeout time.Duration, began time.Time, text string, err error) {
	c.noteRetried(seq, actorrpc.RPCOptions{Timeout: timeout}, began, text, err)
}

// noteRetried writes what became of a call that has retries.
func (c *caller) noteRetried(seq int, options actorrpc.RPCOptions, began time.Time, text string, err error) {
	o := outcome{
		caller: c.name, seq: seq, kind: outcomeOK, code: "-", life: "-", took: time.Since(began), timeout: options.Timeout, retries: options.Retries,
		items: noStream,
	}
	if err != nil {
		o.failed(err)
	} else if _, scanned := fmt.Sscan(text, &o.life, &o.count); scanned != nil {
		o.kind = outcomeOther
	}
	_, _ = c.outcomes.WriteString(o.line())
}

// failed notes the error of a call.
func (o *outcome) failed(err error) {
	failure, typed := errors.AsType[*rpcerror.Error](err)
	switch {
	case !typed:
		o.kind, o.code = outcomeOther, strings.ReplaceAll(err.Error(), " ", "_")
	case failure.Ran:
		o.kind, o.code = outcomeMaybe, string(failure.Code)
	default:
		o.kind, o.code = outcomeNot, string(failure.Code)
	}
}
