// The program counter hosts an actor, a counter, which calls another one that is
// written in Python. It is what examples/actors/counter.hcl runs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
)

func main() {
	factories := map[string]host.Factory{"Counter": newCounter}
	os.Exit(int(host.Main(context.Background(), os.Stderr, factories)))
}

// Counter counts up. Its exported methods are what others call: increment and
// describe. Calls take turns, so it needs no lock.
type Counter struct {
	value  int
	pause  time.Duration // that counting takes
	others *actorrpc.Client
}

// newCounter makes a counter that begins at the argument start, and takes pause
// seconds to count.
func newCounter(ctx context.Context, args json.RawMessage) (any, host.Options, error) {
	var given struct {
		Start int     `json:"start"`
		Pause float64 `json:"pause"`
	}
	if err := json.Unmarshal(args, &given); err != nil {
		return nil, host.Options{}, fmt.Errorf("arguments: %w", err)
	}
	others, err := actorrpc.FromEnvironment(ctx)
	if err != nil {
		return nil, host.Options{}, err
	}
	pause := time.Duration(given.Pause * float64(time.Second))
	return &Counter{value: given.Start, pause: pause, others: others}, host.Options{}, nil
}

// Increment adds to the counter and returns what it shows. A call that is
// cancelled on the way does not count.
func (c *Counter) Increment(ctx context.Context, by int) (int, error) {
	if by < 0 {
		return 0, fmt.Errorf("%d is negative", by)
	}
	select {
	case <-time.After(c.pause):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	c.value += by
	return c.value, nil
}

// Describe returns what the counter shows, in words that it asks the speller for.
func (c *Counter) Describe(ctx context.Context) (string, error) {
	speller, err := c.others.Lookup(ctx, "speller")
	if err != nil {
		return "", err
	}
	return actorrpc.Call[string](ctx, speller, "spell", c.value)
}
