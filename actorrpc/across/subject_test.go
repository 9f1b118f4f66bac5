package across

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
)

// subject is the actor that both languages have; the other is in python/tests/across.py.
type subject struct {
	n    int
	seen []int
}

func (s *subject) Add(by int) int {
	s.n += by
	return s.n
}

func (s *subject) Total() int { return s.n }

func (s *subject) Echo(v any) any { return v }

func (s *subject) Note(n int) { s.seen = append(s.seen, n) }

func (s *subject) Seen() []int { return s.seen }

func (s *subject) Fail(text string) error { return lessonError{text, errors.New("inner")} }

// Flaky fails until it has run so often; Declared does, too.
func (s *subject) Flaky(times int) (int, error) {
	if s.n++; s.n <= times {
		return 0, fmt.Errorf("not yet: %w", lessonError{"no such lesson", errors.New("inner")})
	}
	return s.n, nil
}

func (s *subject) Declared(times int) (int, error) { return s.Flaky(times) }

type lessonError struct {
	text  string
	inner error
}

func (e lessonError) Error() string { return e.text }

func (e lessonError) Unwrap() error { return e.inner }

func (s *subject) Odd() any { return map[string]any{"deep": []any{1, make(chan int)}} }

func (s *subject) Rare() any { return map[int]any{1: math.NaN(), -2: math.Inf(1), 3: uint64(1 << 63)} }

func (s *subject) IsRare(v any) bool {
	m, ok := v.(map[any]any)
	n, isFloat := m[int64(1)].(float64)
	return ok && len(m) == 3 && isFloat && math.IsNaN(n) && m[int64(-2)] == math.Inf(1) && m[int64(3)] == uint64(1<<63)
}

func (s *subject) Trace(ctx context.Context) string { return host.FromContext(ctx).Trace }

func (s *subject) Mixed(_ string, _ map[string]any, _ []int) { s.n++ }

func (s *subject) Big(n int) []byte { return make([]byte, n) }

func (s *subject) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *subject) Left(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}

func (s *subject) Count(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		defer func() { s.n++ }()
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func (s *subject) Dry(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
		yield(0, errors.New("the well is dry"))
	}
}

func (s *subject) Blobs(n, size int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for range n {
			if !yield(make([]byte, size)) {
				return
			}
		}
	}
}

func (s *subject) Forward(ctx context.Context, to codec.ActorRef, name string, args []any) (any, error) {
	h, err := host.FromContext(ctx).Client.Handle(to)
	if err != nil {
		return nil, err
	}
	return actorrpc.Call[any](ctx, h, name, args...)
}

// orders say what a process is. Both languages read them.
type orders struct {
	Role      string `json:"role"` // "server" or "caller"; Go has the former only
	Port      int    `json:"port"`
	Namespace string `json:"namespace"`
	Max       uint64 `json:"max"`    // bytes of a message
	Unique    string `json:"unique"` // a third name, which it wants for itself
}

// rejection begins what a server writes, instead of its address, if its names are not registered.
const rejection = "refused: "

// serve hosts two subjects until no caller listens any more.
func serve(text string, in io.Reader, out io.Writer) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	names, err := resolver.NewFixed("127.0.0.1:1") // for what is in references only
	if err != nil {
		return err
	}
	cfg := host.Config{Host: "127.0.0.1", Port: o.Port, Namespace: o.Namespace, MaxMessageBytes: o.Max}
	if file := os.Getenv("FRAY_ACTOR_IDENTITY"); file != "" {
		if cfg.Identity, err = actorrpc.LoadIdentity(file); err != nil {
			return err
		}
	}
	registered, release, err := host.FromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	defer release()
	cfg.Metadata, cfg.JobID, cfg.Task = registered.Metadata, registered.JobID, registered.Task
	cfg.Client = actorrpc.NewClient(names, actorrpc.Config{Identity: cfg.Identity})
	defer func() { _ = cfg.Client.Close() }()
	server, err := host.New(cfg)
	if err != nil {
		return err
	}
	methods := map[string]host.MethodOptions{"add": {Params: []string{"by"}}, "total": {Idempotent: true},
		"declared": {Retries: 2, RetryErrors: []string{"across.lessonError"}}}
	for _, name := range []string{"subject", "other"} {
		if _, err := server.Register(name, &subject{seen: []int{}}, host.Options{Methods: methods}); err != nil {
			return err
		}
	}
	if o.Unique != "" {
		if _, err := server.Register(o.Unique, &subject{}, host.Options{Unique: true}); err != nil {
			return err
		}
	}
	if err := server.Start(context.Background()); err != nil {
		text, _ := json.Marshal(rejection + err.Error())
		fmt.Fprintln(out, string(text))
		return nil
	}
	address, err := json.Marshal(server.Address())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, string(address))
	_, _ = io.Copy(io.Discard, in)
	for _, name := range []string{"subject", "other"} {
		_ = server.Unregister(context.Background(), name)
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = server.Shutdown(now) // what runs is not waited for
	return nil
}
