package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
)

// counter is an actor that must not run a call twice. It writes each into a file
// before it returns.
type counter struct {
	records
	life   string
	n      int
	failed map[string]failures // by caller: of the last call that was to fail
}

// records are the files in which servers write what they do.
type records struct{ executed, produced *os.File }

// failures are how often a call has failed in a life.
type failures struct{ seq, times int }

// flakyError is the error of a call that is to fail.
type flakyError struct{}

func (flakyError) Error() string { return "it was to fail" }

// Add counts a call, and returns which incarnation ran it, its number there, and
// as many bytes as it was given. It takes so many microseconds, half of them before
// the call counts.
func (c *counter) Add(caller string, seq int, data []byte, takes int) (string, error) {
	half := time.Duration(takes) * time.Microsecond / 2
	if half > 0 {
		<-time.After(half)
		defer func() { <-time.After(half) }()
	}
	if err := c.count(caller, seq); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %s", c.life, c.n, strings.Repeat("x", len(data))), nil
}

// count records a call.
func (c *counter) count(caller string, seq int) error {
	c.n++
	_, err := fmt.Fprintf(c.executed, "%s %d %s %d\n", caller, seq, c.life, c.n)
	return err
}

// Flaky is Add, and fails so often in this life after the call counts.
func (c *counter) Flaky(caller string, seq int, takes, times int) (string, error) {
	text, err := c.Add(caller, seq, nil, takes)
	if err != nil {
		return "", err
	}
	so := c.failed[caller]
	if so.seq != seq {
		so = failures{seq: seq}
	}
	if so.times++; so.times > times {
		return text, nil
	}
	c.failed[caller] = so
	return "", flakyError{}
}

// Nothing is for calls whose result is an argument of others.
func (c *counter) Nothing() any { return nil }

func readOrders() (o orders, err error) {
	err = json.Unmarshal([]byte(os.Getenv(envOrders)), &o)
	return o, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// serve is a server of counters. It ends at SIGTERM, or when no orders come any more.
func serve(in io.Reader, out io.Writer) error {
	o, err := readOrders()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, release, err := host.FromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	defer release()
	cfg.Keepalive, cfg.Patience = seconds(o.Keepalive), seconds(o.Patience)
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	srv, err := host.New(cfg)
	if err != nil {
		return err
	}
	if err := srv.Start(ctx); err != nil {
		return err
	}
	var files records
	if files.executed, err = appending(o.Executed); err != nil {
		return err
	}
	defer files.executed.Close()
	if files.produced, err = appending(o.Produced); err != nil {
		return err
	}
	defer files.produced.Close()
	fmt.Fprintln(out, "ready", srv.Address(), used())
	var orders sync.WaitGroup
	orders.Go(func() {
		defer stop()
		for s := bufio.NewScanner(in); s.Scan() && ctx.Err() == nil; {
			fmt.Fprintln(out, obey(ctx, srv, s.Text(), files))
		}
	})
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	return srv.Shutdown(end)
}

// appending opens a file to which several processes write.
func appending(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// obey carries out one order.
func obey(ctx context.Context, srv *host.Server, order string, files records) string {
	verb, name, _ := strings.Cut(order, " ")
	switch verb {
	case "host":
		name, life, _ := strings.Cut(name, " ")
		if _, err := srv.Register(name, &counter{records: files, life: life, failed: map[string]failures{}}, host.Options{}); err != nil {
			return "failed " + err.Error()
		}
		return "hosted"
	case "drop":
		if err := srv.Unregister(ctx, name); err != nil {
			return "dropped here only: " + err.Error()
		}
		return "dropped"
	case "usage":
		return "usage " + used().String()
	}
	return "failed: no such order"
}

// used is what this process uses. Go gives threads of the system back at its end only.
func used() usage {
	entries, _ := os.ReadDir("/proc/self/fd")
	return usage{threads: runtime.NumGoroutine(), descriptors: len(entries)}
}
