// The program counter hosts an actor, a counter, which calls another one that is
// written in Python. It is what examples/actors/counter.hcl runs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

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
	others *actorrpc.Client
}

// newCounter makes a counter that begins at the argument start.
func newCounter(ctx context.Context, args json.RawMessage) (any, host.Options, error) {
	var given struct {
		Start int `json:"start"`
	}
	if err := json.Unmarshal(args, &given); err != nil {
		return nil, host.Options{}, fmt.Errorf("arguments: %w", err)
	}
	others, err := actorrpc.FromEnvironment(ctx)
	if err != nil {
		return nil, host.Options{}, err
	}
	return &Counter{value: given.Start, others: others}, host.Options{}, nil
}

// Increment adds to the counter and returns what it shows.
func (c *Counter) Increment(_ context.Context, by int) (int, error) {
	if by < 0 {
		return 0, fmt.Errorf("%d is negative", by)
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
