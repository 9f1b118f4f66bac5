package across

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/clusterapi"
)

// order is one action that a caller is to take. Both languages read it.
type order struct {
	Do        string  `json:"do"` // call; stream: all items of one; begin, end, cancel: the call ID; find: where an actor is; await: Size of a name; burst: Size calls with 0, 1 and so on; relay: the second method with what the first returns; grpc
	ID        int     `json:"id"`
	Address   string  `json:"address"`
	Identity  string  `json:"identity"`
	Namespace string  `json:"namespace"`
	Actor     string  `json:"actor"` // "": subject
	Method    string  `json:"method"`
	Args      string  `json:"args"` // JSON as package codec has it
	Size      int     `json:"size"` // instead: so many bytes
	Leave     int     `json:"leave"` // a stream after so many items; 0: at its end
	Odd       bool    `json:"odd"`  // instead: {"lr": what no codec carries}
	Timeout   float64 `json:"timeout"`
	Retries   int     `json:"retries"`
	RetryOf   string  `json:"retry_of"` // type of the errors that are retried; "*": all
	Resolve   float64 `json:"resolve"`  // seconds
	Max       uint64  `json:"max"`      // bytes of a message
	Trace     string  `json:"trace"`    // W3C traceparent
	Cluster   string  `json:"cluster"`  // address of the registry that knows the actor, instead of its own
	Job       string  `json:"job"`      // that is to host it
}

// answer is what came of it.
type answer struct {
	Value string   `json:"value"` // as JSON
	Error *problem `json:"error"`
}

func (a answer) String() string {
	if a.Error == nil {
		return a.Value
	}
	return fmt.Sprintf("%+v", *a.Error)
}

// problem is an error, as both languages have it.
type problem struct {
	Code      rpcerror.Code `json:"code"`
	Message   string        `json:"message"`
	Ran       bool          `json:"ran"`
	Actor     string        `json:"actor"`
	Method    string        `json:"method"`
	Argument  string        `json:"argument"`
	Near      []string      `json:"near"`
	Type      string        `json:"type"`
	Traceback string        `json:"traceback"`
	Cause     string        `json:"cause"`
	Text      string        `json:"text"`
}

// caller makes calls from one process.
type caller interface {
	do(t *testing.T, o order) answer
	in() language
}

func newCaller(t *testing.T, l language, environment ...string) caller {
	t.Helper()
	if l == golang {
		c := &goCaller{clients: map[order]*actorrpc.Client{}, futures: map[int]*actorrpc.Future[any]{}}
		t.Cleanup(c.close)
		return c
	}
	p := &pythonCaller{start(t, python, orders{Role: "caller"}, environment...)}
	var ready string
	p.hear(t, &ready)
	return p
}

// pythonCaller is a process of Python, python/tests/across.py.
type pythonCaller struct{ *process }

func (p *pythonCaller) in() language { return python }

func (p *pythonCaller) do(t *testing.T, o order) answer {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(p.stdin, "%s\n", text); err != nil {
		t.Fatal(err)
	}
	var a answer
	p.hear(t, &a)
	return a
}

// goCaller is this process.
type goCaller struct {
	clients map[order]*actorrpc.Client // by what makes their connections
	futures map[int]*actorrpc.Future[any]
}

func (c *goCaller) in() language { return golang }

func (c *goCaller) close() {
	for _, client := range c.clients {
		_ = client.Close()
	}
}

func (c *goCaller) do(t *testing.T, o order) answer {
	t.Helper()
	value, err := c.carry(t, o)
	e, ok := errors.AsType[*rpcerror.Error](err)
	if !ok && err != nil {
		t.Fatal(err)
	}
	if e == nil {
		return answer{Value: value}
	}
	p := &problem{e.Code, e.Message, e.Ran, e.Actor, e.Method, e.Argument, e.Suggestions, e.Type, e.Traceback, "", e.Error()}
	if e.Cause != nil {
		p.Cause = e.Cause.Message
	}
	return answer{Error: p}
}

func (c *goCaller) carry(t *testing.T, o order) (string, error) {
	t.Helper()
	ctx := actorrpc.WithTrace(t.Context(), o.Trace)
	switch o.Do {
	case "call":
		value, err := actorrpc.Call[any](ctx, c.handle(t, o), o.Method, arguments(t, o)...)
		return written(value), err
	case "begin":
		c.futures[o.ID] = actorrpc.Go[any](ctx, c.handle(t, o), o.Method, arguments(t, o)...)
		return "", nil
	case "end":
		value, err := c.futures[o.ID].Result(ctx)
		return written(value), err
	case "cancel":
		c.futures[o.ID].Cancel()
		return "", nil
	case "find":
		return c.find(t, o)
	case "await":
		found, err := c.client(t, o).WaitForGroup(ctx, resolver.Group{Name: o.Actor, Count: o.Size, JobID: o.Job})
		return strconv.Itoa(len(found)), err
	case "burst":
		return "", c.burst(t, o)
	case "stream":
		return c.stream(t, o), nil
	case "relay":
		first, second, _ := strings.Cut(o.Method, " ")
		value, err := actorrpc.Call[any](ctx, c.handle(t, o), first)
		if err == nil {
			value, err = actorrpc.Call[any](ctx, c.handle(t, o), second, value)
		}
		return written(value), err
	}
	t.Fatalf("this caller cannot %q", o.Do)
	return "", nil
}

// stream is a list of items, and how it ended if that was by an error. Of bytes it has the number.
func (c *goCaller) stream(t *testing.T, o order) string {
	t.Helper()
	got, end := []any{}, ""
	for item, err := range actorrpc.Stream[any](t.Context(), c.handle(t, o), o.Method, arguments(t, o)...) {
		if e, ok := errors.AsType[*rpcerror.Error](err); ok {
			end = fmt.Sprintf(" then %s: %s", e.Code, strings.TrimPrefix(e.Message, "ValueError: "))
			break
		}
		if bytes, ok := item.([]byte); ok {
			item = len(bytes)
		}
		if got = append(got, item); len(got) == o.Leave {
			break
		}
	}
	return written(got) + end
}

// find is where the actors of a name are.
func (c *goCaller) find(t *testing.T, o order) (string, error) {
	t.Helper()
	found := []string{}
	handles, err := c.client(t, o).LookupAll(t.Context(), o.Actor)
	for _, h := range handles {
		found = append(found, h.ActorRef().URL)
	}
	if rpcerror.CodeOf(err) == rpcerror.CodeUnknownActor {
		err = nil
	}
	return strings.Join(found, " "), err
}

// burst makes many calls at once, each by a handle of its own.
func (c *goCaller) burst(t *testing.T, o order) error {
	t.Helper()
	futures := make([]*actorrpc.Future[any], o.Size)
	for n := range futures {
		futures[n] = actorrpc.Go[any](t.Context(), c.handle(t, o), o.Method, n, options(o))
	}
	for _, f := range futures {
		if _, err := f.Result(t.Context()); err != nil {
			return err
		}
	}
	return nil
}

// client is the process's for those connections.
func (c *goCaller) client(t *testing.T, o order) *actorrpc.Client {
	t.Helper()
	key := order{Address: o.Address, Identity: o.Identity, Namespace: o.Namespace, Resolve: o.Resolve, Max: o.Max, Cluster: o.Cluster}
	if client, ok := c.clients[key]; ok {
		return client
	}
	var names resolver.Resolver
	var err error
	if o.Cluster != "" {
		names = clusterResolver(t, o.Cluster)
	} else if names, err = resolver.NewFixed(o.Address); err != nil {
		t.Fatal(err)
	}
	config := actorrpc.Config{Namespace: o.Namespace, MaxMessageBytes: o.Max, ResolveTimeout: seconds(o.Resolve)}
	if o.Identity != "" {
		if config.Identity, err = actorrpc.LoadIdentity(o.Identity); err != nil {
			t.Fatal(err)
		}
	}
	client := actorrpc.NewClient(names, config)
	c.clients[key] = client
	return client
}

func clusterResolver(t *testing.T, address string) *resolver.Cluster {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := resolver.NewCluster(clusterapi.NewMetadataClient(conn), "across")
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// handle is one made anew. Where a cluster knows the actor it need not be there yet.
func (c *goCaller) handle(t *testing.T, o order) actorrpc.Handle {
	t.Helper()
	client := c.client(t, o)
	name := o.Actor
	if name == "" {
		name = "subject"
	}
	h, err := client.Handle(codec.ActorRef{Name: name, Namespace: o.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func options(o order) actorrpc.RPCOptions {
	out := actorrpc.RPCOptions{Timeout: seconds(o.Timeout), Retries: o.Retries}
	switch o.RetryOf {
	case "":
	case "*":
		out.RetryErrors = &actorrpc.ErrorFilter{}
	default:
		out.RetryErrors = &actorrpc.ErrorFilter{Types: []string{o.RetryOf}}
	}
	return out
}

func arguments(t *testing.T, o order) []any {
	t.Helper()
	switch {
	case o.Odd:
		return []any{map[string]any{"lr": make(chan int)}, options(o)}
	case o.Size > 0:
		return []any{make([]byte, o.Size), options(o)}
	}
	args, err := codec.DecodeArgs(codec.JSON, []byte(o.Args), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return append(args.Positional, actorrpc.Named(args.Named), options(o))
}

// written is a value as text, the same for the same value.
func written(value any) string {
	data, _, err := codec.EncodeResult(codec.JSON, value)
	if err != nil {
		return err.Error()
	}
	return canonical(data)
}

func canonical(data []byte) string {
	var tree any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return err.Error()
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// expect waits for something, looking often.
func expect(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never happened: %s", what)
		}
	}
}
