package scale

import (
	"fmt"
	"runtime"
	"time"

	"github.com/fray-ml/fray/apply"
)

// Rows show what was measured of one size, with targets, beside what was measured of a former
// version. unit is how many bytes the system's unit of memory has.
func (r Result) Rows(unit int64) [][]string {
	at := fmt.Sprintf("%d hosts, %d tasks: ", r.Hosts, r.Tasks)
	return [][]string{
		{at + "quiet", fmt.Sprintf("%.1f%% of a core, peak %d MB", 100*r.Quiet, r.QuietPeak*unit/1_000_000), "< 35%, < 1.5 GB at 25000",
			fmt.Sprintf("7.0%%, 87 MB at 1000 and 21.7%%, 199 MB at 5000 on November 26; %d cores for hosts, bucket and controller", runtime.NumCPU())},
		{at + "requests per host-hour", fmt.Sprintf("%.0f writes, %.1f lists, %.1f reads", r.Writes, r.Lists, r.Reads), "< 70 writes, < 5 reads",
			"about 700 and 4500 by the store alone, measured with 4 hosts"},
		{at + "a task dies, until a decision is there", fmt.Sprintf("p50 %s, p95 %s", millis(r.Deaths[len(r.Deaths)/2]), millis(r.deathP95())), "p95 < 1 s",
			fmt.Sprintf("1.13 s at 1000 on November 26; longest %s of %d, by the clock; %s of CPU each",
				millis(r.Deaths[len(r.Deaths)-1]), len(r.Deaths), millis(r.CPU.Deaths/time.Duration(len(r.Deaths))))},
		{at + "takeover", fmt.Sprintf("first decision %s, all hosts back in %s", seconds(r.First), seconds(r.Back)), "< 5 s, < 15 s",
			fmt.Sprintf("back is not seen before %s; on another machine a lease lapses first, 3.5 s; %s of CPU; at first all hosts had streams after %s and %s of CPU",
				lapsed, seconds(r.CPU.Takeover), seconds(r.Connected), seconds(r.CPU.Connect))},
		{fmt.Sprintf("%d slices preempted at once", r.Slices), fmt.Sprintf("%d asked for again in %s, longest step %s", r.Asked, seconds(r.Again), millis(sum(r.Longest))),
			"no step over 250 ms", fmt.Sprintf("of that it observed %s, planned %s and saved %s; %s of CPU; the simulated cloud makes slices at once, has no limits, and is listed each %s",
				millis(r.Longest.Observe), millis(r.Longest.Plan), millis(r.Longest.Save), seconds(r.CPU.Again), pace)},
	}
}

// Growth is a row of how many times as much this size takes as a smaller one.
func (r Result) Growth(from Result) []string {
	times := func(is, was float64) string { return fmt.Sprintf("%.1fx", is/max(was, 1e-9)) }
	cpu := func(is, was time.Duration) string { return times(is.Seconds(), was.Seconds()) }
	hosts := times(float64(r.Hosts), float64(from.Hosts))
	return []string{
		fmt.Sprintf("growth from %d to %d hosts, %s", from.Hosts, r.Hosts, hosts),
		fmt.Sprintf("quiet %s, memory %s, to connect %s, a death %s, a takeover %s, a preemption %s", times(r.Quiet, from.Quiet),
			times(float64(r.QuietPeak), float64(from.QuietPeak)), cpu(r.CPU.Connect, from.CPU.Connect), cpu(r.CPU.Deaths, from.CPU.Deaths),
			cpu(r.CPU.Takeover, from.CPU.Takeover), cpu(r.CPU.Again, from.CPU.Again)),
		"at most " + hosts, fmt.Sprintf("CPU of controllers; by the clock a death takes %s", cpu(r.deathP95(), from.deathP95())),
	}
}

func (r Result) deathP95() time.Duration { return r.Deaths[len(r.Deaths)*95/100] }

// sum is how long a step took.
func sum(t apply.Timing) time.Duration { return t.Observe + t.Plan + t.Save }

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
