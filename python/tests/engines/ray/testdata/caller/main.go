// The caller adds 1 to an actor of the given name, as often as given, and prints what it shows each time.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/fray-ml/fray/actorrpc"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, times string) error {
	client, err := actorrpc.FromEnvironment(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	counter, err := client.Lookup(ctx, name)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(times)
	for ; n > 0 && err == nil; n-- {
		var value int
		if value, err = actorrpc.Call[int](ctx, counter, "increment", 1); err == nil {
			fmt.Println(value)
		}
	}
	return err
}
