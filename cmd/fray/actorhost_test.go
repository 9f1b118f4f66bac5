package main

import (
	"context"
	"encoding/json"
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

func actorHost() int {
	return int(host.Main(context.Background(), os.Stderr, map[string]host.Factory{
		"Counter": func(_ context.Context, args json.RawMessage) (any, host.Options, error) {
			var given struct{ Start int }
			err := json.Unmarshal(args, &given)
			return &countingActor{N: given.Start}, host.Options{}, err
		},
	}))
}
