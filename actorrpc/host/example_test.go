package host_test

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
)

// Counter is an actor: its calls run one after the other, so that it needs no lock.
type Counter struct{ n int }

// Increment is called as "increment".
func (c *Counter) Increment(_ context.Context, by int) (int, error) {
	if by < 0 {
		return 0, fmt.Errorf("by is %d: a counter does not go back", by)
	}
	c.n += by
	return c.n, nil
}

func Example() {
	ctx := context.Background()
	server, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := server.Register("counter", &Counter{}, host.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := server.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Shutdown(ctx) }()

	names, err := resolver.NewFixed(server.Address())
	if err != nil {
		fmt.Println(err)
		return
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	defer func() { _ = client.Close() }()
	counter, err := client.Lookup(ctx, "counter")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(actorrpc.Call[int](ctx, counter, "increment", 2))
	fmt.Println(actorrpc.Call[int](ctx, counter, "increment", -1))
	fmt.Println(actorrpc.Call[int](ctx, counter, "incremnt", 1))
	// Output:
	// 2 <nil>
	// 0 counter.increment: by is -1: a counter does not go back
	// 0 counter.incremnt: no method "incremnt"; did you mean increment?
}
