package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"

	"github.com/fray-ml/fray/actorrpc/host"
)

// actorHostWord makes the test binary a program that hosts an actor, as people
// write them in Go.
const actorHostWord = "actor-host"

// countingActor is the actor.
type countingActor struct{ N int }

// Add adds and returns the sum.
func (c *countingActor) Add(_ context.Context, by int) (int, error) {
	c.N += by
	return c.N, nil
}

// Count streams the numbers below one.
func (c *countingActor) Count(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
		yield(0, errors.New("there are no more"))
	}
}

func actorHost() int {
	return int(host.Main(context.Background(), os.Stderr, map[string]host.Factory{
		"Counter": func(_ context.Context, args json.RawMessage) (any, host.Options, error) {
			var given struct{ Start int }
			err := json.Unmarshal(args, &given)
			return &countingActor{N: given.Start}, host.Options{}, err
		},
	}))
}
