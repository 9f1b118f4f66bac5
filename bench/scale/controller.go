package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// command is what the controller's process is told by a line of its standard input.
type command string

// The commands. Each is answered with a figure.
const (
	tell    command = "tell"
	preempt command = "preempt"
	// profile begins another CPU profile, and writes one of the heap.
	profile command = "profile"
)

// figure is how a controller's process stands.
type figure struct {
	CPU     time.Duration // so far
	Peak    int64         // of resident memory, in the system's unit
	Steps   int           // since the last command
	Longest apply.Timing  // of these
	Created int           // slices, since the preemption
}

// leaseTTL is longer than by default: hosts, bucket and controllers share cores, and a lease
// whose renewal is late is lost. A takeover on one machine waits for no lease to lapse.
const leaseTTL = 20 * time.Second

// Control is the process of a controller over the bucket at an address. It ends with in.
// It writes profiles to a directory; "": none.
func Control(ctx context.Context, url, profiles string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	written := profiling{dir: profiles}
	if err := written.next(); err != nil {
		return err
	}
	s, err := open(ctx, url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}, time.Second)
	if err != nil {
		return err
	}
	doc, _, err := apply.LoadState(ctx, s)
	if err != nil {
		return err
	}
	p := &provider{slices: map[string]schema.SliceStatus{}}
	for name, slice := range doc.Slices {
		p.slices[name] = schema.SliceStatus{Spec: slice.Spec, Phase: schema.SliceReady}
	}
	var mu sync.Mutex
	var f figure
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Config{
			Store: s, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: p}, Version: "bench", Command: "bench",
			Log:     log,
			TTL:     leaseTTL,
			Service: controller.Service{API: "127.0.0.1:0", Stack: doc.Stack()},
			Looked: func(t apply.Timing) {
				mu.Lock()
				defer mu.Unlock()
				f.Steps++
				if t.Observe+t.Plan+t.Save > f.Longest.Observe+f.Longest.Plan+f.Longest.Save {
					f.Longest = t
				}
				if profiles != "" {
					log.Info("step", "observe", t.Observe, "plan", t.Plan, "save", t.Save, "actions", t.Actions)
				}
			},
		})
	}()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch command(lines.Text()) {
		case preempt:
			p.preempt()
		case profile:
			if err := written.next(); err != nil {
				return err
			}
		case tell, slow:
		}
		mu.Lock()
		now := f
		f = figure{}
		mu.Unlock()
		p.mu.Lock()
		now.Created = p.created
		p.mu.Unlock()
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return fmt.Errorf("measure the controller: %w", err)
		}
		now.CPU, now.Peak = time.Duration(usage.Utime.Nano()+usage.Stime.Nano()), usage.Maxrss
		if err := json.NewEncoder(out).Encode(now); err != nil {
			return err
		}
	}
	cancel()
	return errors.Join(lines.Err(), <-ended)
}
