package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/fray-ml/fray/bench/scale"
)

// What is measured at each number of hosts.
const (
	scaleDeaths = 30
	scaleQuiet  = time.Minute
)

// scaled measures a controller over many simulated hosts.
func (b *bench) scaled() error {
	for _, n := range b.opts.hosts {
		r, err := scale.Bench{
			Slices: n / scale.Hosts, Deaths: scaleDeaths, Quiet: scaleQuiet, Log: b.log,
			Start: func(ctx context.Context, url string) *exec.Cmd {
				cmd := exec.CommandContext(ctx, b.self, oneArg, oneScale, url, "")
				cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST=")
				return cmd
			},
		}.Measure(b.ctx)
		if err != nil {
			return fmt.Errorf("%d hosts: %w", n, err)
		}
		at := fmt.Sprintf("%d hosts with a running task each: ", r.Hosts)
		b.row(at+"quiet", fmt.Sprintf("%.1f%% of a core, peak %s", 100*r.Quiet, mb(r.Peak*maxrssUnit)), "< 35%, < 1.5 GB at 25000",
			fmt.Sprintf("%s; %d cores for hosts, bucket and controller", scaleQuiet, runtime.NumCPU()))
		b.row(at+"requests per host-hour", fmt.Sprintf("%.0f writes, %.1f lists, %.1f reads", r.Writes, r.Lists, r.Reads), "< 70 writes, < 5 reads",
			"about 700 and 4500 by the store alone, measured with 4 hosts")
		b.row(at+"a task dies, until a decision is there", fmt.Sprintf("p50 %s, p95 %s", ms(r.Deaths[len(r.Deaths)/2]), ms(r.Deaths[len(r.Deaths)*95/100])), "p95 < 1 s",
			fmt.Sprintf("longest %s of %d, by the clock", ms(r.Deaths[len(r.Deaths)-1]), len(r.Deaths)))
		b.row(at+"takeover", fmt.Sprintf("first decision %s, all hosts back in %s", sec(r.First), sec(r.Back)), "< 5 s, < 15 s",
			fmt.Sprintf("back is not seen before 9 s; at first all hosts had streams after %s", sec(r.Connected)))
		b.row(fmt.Sprintf("%d slices preempted at once", n/scale.Hosts), fmt.Sprintf("%d asked for again in %s, longest step %s", r.Asked, sec(r.Again), ms(r.Longest)),
			"no step over 250 ms", "a simulated cloud without a limit of its own")
		if err := b.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}
