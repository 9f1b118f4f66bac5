package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/bench/scale"
)

// What is measured at each number of hosts.
const (
	scaleDeaths = 30
	scaleQuiet  = time.Minute
	scaleSettle = 15 * time.Second
)

// scaled measures a controller over many simulated hosts.
func (b *bench) scaled() error {
	var first scale.Result
	for i, n := range b.opts.hosts {
		r, err := scale.Bench{
			Slices: n / scale.Hosts, Deaths: scaleDeaths, Quiet: scaleQuiet, Settle: scaleSettle, Log: b.log,
			Start: func(ctx context.Context, url string) *exec.Cmd {
				cmd := exec.CommandContext(ctx, b.self, oneArg, oneScale, url, b.opts.profiles)
				cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST=")
				return cmd
			},
		}.Measure(b.ctx)
		if err != nil {
			return fmt.Errorf("%d hosts: %w", n, err)
		}
		b.scaleRows(r)
		if i == 0 {
			first = r
		} else {
			b.growthRow(first, r)
		}
		if err := b.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// scaleRows prints what was measured of one size, beside what was of a former version.
func (b *bench) scaleRows(r scale.Result) {
	at := fmt.Sprintf("%d hosts, %d tasks: ", r.Hosts, r.Tasks)
	b.row(at+"quiet", fmt.Sprintf("%.1f%% of a core, peak %s", 100*r.Quiet, mb(r.QuietPeak*maxrssUnit)), "< 35%, < 1.5 GB at 25000",
		fmt.Sprintf("7.0%%, 87 MB at 1000 and 21.7%%, 199 MB at 5000 on November 26; %s; %d cores for hosts, bucket and controller", scaleQuiet, runtime.NumCPU()))
	b.row(at+"requests per host-hour", fmt.Sprintf("%.0f writes, %.1f lists, %.1f reads", r.Writes, r.Lists, r.Reads), "< 70 writes, < 5 reads",
		"about 700 and 4500 by the store alone, measured with 4 hosts")
	b.row(at+"a task dies, until a decision is there", fmt.Sprintf("p50 %s, p95 %s", ms(r.Deaths[len(r.Deaths)/2]), ms(deathP95(r))), "p95 < 1 s",
		fmt.Sprintf("1.13 s at 1000 on November 26; longest %s of %d, by the clock; %s of CPU each", ms(r.Deaths[len(r.Deaths)-1]), len(r.Deaths), ms(r.CPU.Deaths/time.Duration(len(r.Deaths)))))
	b.row(at+"takeover", fmt.Sprintf("first decision %s, all hosts back in %s", sec(r.First), sec(r.Back)), "< 5 s, < 15 s",
		fmt.Sprintf("back is not seen before 9 s; on another machine a lease lapses first, 3.5 s; %s of CPU; at first all hosts had streams after %s and %s of CPU",
			sec(r.CPU.Takeover), sec(r.Connected), sec(r.CPU.Connect)))
	b.row(fmt.Sprintf("%d slices preempted at once", r.Slices), fmt.Sprintf("%d asked for again in %s, longest step %s", r.Asked, sec(r.Again), ms(stepTime(r.Longest))),
		"no step over 250 ms", fmt.Sprintf("of that it observed %s, planned %s and saved %s; %s of CPU; a simulated cloud without a limit of its own",
			ms(r.Longest.Observe), ms(r.Longest.Plan), ms(r.Longest.Save), sec(r.CPU.Again)))
}

// growthRow prints how many times as much a larger size takes.
func (b *bench) growthRow(first, r scale.Result) {
	times := func(is, was float64) string { return fmt.Sprintf("%.1fx", is/max(was, 1e-9)) }
	hosts := times(float64(r.Hosts), float64(first.Hosts))
	b.row(fmt.Sprintf("growth from %d to %d hosts, %s", first.Hosts, r.Hosts, hosts),
		fmt.Sprintf("quiet %s, memory %s, to connect %s, a death %s, a takeover %s, a preemption %s",
			times(r.Quiet, first.Quiet), times(float64(r.QuietPeak), float64(first.QuietPeak)),
			times(r.CPU.Connect.Seconds(), first.CPU.Connect.Seconds()), times(r.CPU.Deaths.Seconds(), first.CPU.Deaths.Seconds()),
			times(r.CPU.Takeover.Seconds(), first.CPU.Takeover.Seconds()), times(r.CPU.Again.Seconds(), first.CPU.Again.Seconds())),
		"at most "+hosts, fmt.Sprintf("CPU of controllers; by the clock a death takes %s", times(deathP95(r).Seconds(), deathP95(first).Seconds())))
}

func deathP95(r scale.Result) time.Duration { return r.Deaths[len(r.Deaths)*95/100] }

func stepTime(t apply.Timing) time.Duration { return t.Observe + t.Plan + t.Save }
