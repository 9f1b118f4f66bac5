// Package storebill counts what a small stack asks of its bucket.
package storebill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/sleep"
)

// What is measured of the requests to a bucket.
const (
	Hosts     = 4 // of the stack
	window    = time.Minute
	warmup    = 15 * time.Second
	busyPause = 5 * time.Second // between two jobs of a busy stack that are replaced
)

// stack is a stack on this machine whose state is in an emulated bucket. Each job has a host.
const stack = `
fray {
  state "gcs" {
    bucket = "acme"
    prefix = "bench"
  }
}

provider "local" {}

job "steady" {
  count   = 4
  command = ["sleep", "100000"]
}
`

// counter counts what a stack asks of its bucket, by the classes that the service bills.
type counter struct {
	next                 http.Handler
	writes, lists, reads atomic.Int64
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Query().Has("upload_id"): // a chunk of an upload that was counted
	case r.Method == http.MethodPost, r.Method == http.MethodPatch:
		c.writes.Add(1)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/o"):
		c.lists.Add(1)
	case r.Method == http.MethodGet:
		c.reads.Add(1)
	}
	c.next.ServeHTTP(w, r)
}

// Bench is where a stack is made, and with which program.
type Bench struct {
	Fray string // the program
	Dir  string // made
}

// Count is what a stack asked for in a while, each number for one host and hour.
type Count struct {
	Name                 string // what the stack did
	Took                 time.Duration
	Writes, Lists, Reads float64
}

// Dollars is the price of an hour of a host at list prices:
// https://cloud.google.com/storage/pricing, standard storage in one region.
func (c Count) Dollars() float64 { return ((c.Writes+c.Lists)*0.05 + c.Reads*0.004) / 10_000 }

// Measure counts the requests of a stack: with a controller and nothing to do, with jobs that start
// all the time, and without a controller.
func (b Bench) Measure(ctx context.Context) (all []Count, err error) {
	service, err := storage.New(storage.Config{Buckets: []storage.Bucket{{Name: "acme"}}, WriteInterval: time.Second})
	if err != nil {
		return nil, err
	}
	counted := &counter{next: service}
	server := httptest.NewServer(counted)
	defer server.Close()
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.Dir, "fray.hcl"), []byte(stack), 0o600); err != nil {
		return nil, err
	}
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, b.Fray, args...)
		cmd.Dir = b.Dir
		cmd.Env = append(os.Environ(), "FRAY_GCP_ENDPOINT="+server.URL)
		return cmd
	}
	do := func(ctx context.Context, args ...string) error {
		if out, err := command(ctx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("fray %s: %w: %s", args[0], err, out)
		}
		return nil
	}
	defer func() {
		err = errors.Join(err, do(context.WithoutCancel(ctx), "destroy", "--auto-approve"))
	}()
	if err := do(ctx, "apply", "--auto-approve"); err != nil {
		return nil, err
	}
	watch := command(ctx, "watch")
	if err := watch.Start(); err != nil {
		return nil, err
	}
	quiet, err := counted.during(ctx, "quiet, with a controller", nil)
	var busy Count
	if err == nil {
		busy, err = counted.during(ctx, fmt.Sprintf("busy: a job replaced every %s", busyPause), func() error {
			return do(ctx, "apply", "--auto-approve", "--replace", "job.steady[0]")
		})
	}
	if err := errors.Join(err, watch.Process.Signal(syscall.SIGINT), watch.Wait()); err != nil {
		return nil, err
	}
	alone, err := counted.during(ctx, "without a controller", nil)
	return []Count{quiet, busy, alone}, err
}

// during counts for a while. What there is to do is done again and again meanwhile.
func (c *counter) during(ctx context.Context, name string, do func() error) (Count, error) {
	if !sleep.For(ctx, warmup) {
		return Count{}, context.Cause(ctx)
	}
	writes, lists, reads, began := c.writes.Load(), c.lists.Load(), c.reads.Load(), time.Now()
	for time.Since(began) < window {
		if do != nil {
			if err := do(); err != nil {
				return Count{}, err
			}
		}
		if !sleep.For(ctx, max(0, min(busyPause, window-time.Since(began)))) && ctx.Err() != nil {
			return Count{}, context.Cause(ctx)
		}
	}
	took := time.Since(began)
	per := func(n int64) float64 { return float64(n) / Hosts / took.Hours() }
	return Count{
		Name: name, Took: took,
		Writes: per(c.writes.Load() - writes), Lists: per(c.lists.Load() - lists), Reads: per(c.reads.Load() - reads),
	}, nil
}
