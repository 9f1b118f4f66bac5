package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// roleVariable makes the test binary play one process of a test of several.
const roleVariable = "FRAY_STORE_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(context.Background(), role, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, role, path string) error {
	d, err := store.OpenDir(path)
	if err != nil {
		return err
	}
	switch role {
	case "increment":
		for range increments {
			if err := storetest.Increment(ctx, d, "counter.json"); err != nil {
				return err
			}
		}
		return nil
	case "count":
		return countOn(ctx, d)
	case "write":
		return writeForever(ctx, d)
	case "hold":
		return hold(ctx, d)
	case "be suspended":
		return storetest.BeSuspended(ctx, d, os.Stdin, os.Stdout)
	}
	return errors.New("unknown role")
}

// countOn increments the counter until its input ends, and says so after each by an empty line.
func countOn(ctx context.Context, d *store.Dir) error {
	var ended atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	for !ended.Load() {
		if err := storetest.Increment(ctx, d, counter); err != nil {
			return err
		}
		if _, err := fmt.Println(); err != nil {
			return fmt.Errorf("the reader is gone: %w", err)
		}
	}
	return nil
}

// hold holds the lease until it is killed or loses it, or the test has died.
func hold(ctx context.Context, d *store.Dir) error {
	ttl, err := time.ParseDuration(os.Args[2])
	if err != nil {
		return err
	}
	held, err := store.Acquire(ctx, d, store.LeaseConfig{Command: "holder", TTL: ttl})
	if err != nil {
		return err
	}
	fmt.Println(held.Epoch())
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-held.Context().Done():
		fmt.Println(context.Cause(held.Context()))
		return nil
	}
}

// writeForever writes numbered objects and says so after each.
func writeForever(ctx context.Context, d *store.Dir) error {
	start, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	for n := start; ; n++ {
		if _, err := d.Put(ctx, victim(n), numbered(n), store.Any); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return fmt.Errorf("the reader is gone: %w", err)
		}
	}
}

// player starts the test binary in a role; it dies with the test.
func player(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}
