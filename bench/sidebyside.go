package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// The size that the targets are for.
const targetSize = 5_000

// columnWidth lets the columns of rows that are printed hours apart be as wide.
const columnWidth = 12

// sideBench measures plans and applies of ours beside those of other programs.
type sideBench struct{ *bench }

// sideBySide runs the same commands on the same shapes with fray on simulated
// slices and with terraform on its built-in resource, each command in a process
// of its own, then fray alone on more.
func (b sideBench) sideBySide() error {
	theirs, both := b.terraform()
	floor, err := measure(exec.CommandContext(b.ctx, "true"))
	if err != nil {
		return err
	}
	b.announce(both, floor)
	over := slow{}
	base := map[shape]trial{}
	b.out.Init(os.Stdout, columnWidth, 4, 2, ' ', 0) // what was written before is flushed
	b.row("SHAPE", "N", "COMMAND", "OURS", "THEIRS", "RATIO", "OUR PEAK", "THEIRS", "RATIO", "OWN COST", "OUR TARGET")
	for _, n := range b.opts.sizes {
		for _, s := range b.opts.shapes {
			mine, err := b.try(b.fraySimulated(), s, n, over)
			if err != nil {
				return err
			}
			base[s] = mine
			var other trial
			if both {
				if other, err = b.try(theirs, s, n, over); err != nil {
					return err
				}
			}
			b.compare(mine, other)
			if err := b.out.Flush(); err != nil {
				return err
			}
		}
	}
	return b.growth(over, base)
}

// announce prints what will be done and how long it may take.
func (b sideBench) announce(both bool, floor cost) {
	out := func(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }
	out("sidebyside: plan, apply, plan again and destroy of %v, N = %v; then ours alone with N = %v.", b.opts.shapes, b.opts.sizes, b.opts.growth)
	out("Ours: parse, evaluate, plan and step on simulated slices, state and lease in a directory, mailbox in %q.", b.opts.mail)
	if b.opts.link == linkValue {
		out("A job that reads another reads its address, as theirs reads the other's output.")
	} else {
		out("Our jobs name each other in depends_on and read nothing; theirs reads the other's output.")
	}
	out("Times are of whole processes (plans of ours: the median of 3), peaks of resident memory;")
	out("peaks below %s are not measurable. RATIO is theirs to ours, GROWTH the cost of each resource to that at N = %d, OWN COST", mb(floor.peak), b.baseSize())
	out("processor time for each resource without that of simulated slices and agents, WRITES those of the state.")
	if !both {
		out("There is no terraform on the PATH: ours alone.")
		return
	}
	out("Theirs (terraform_data) took earlier, on 2 cores with N = 5000: for_each 52 s to plan, 568 s to apply, 95 s to plan again;")
	out("a chain of 1000 took 267 s to apply. So N = 5000 takes hours. A command that takes longer than %s is ended, and not tried", b.opts.limit)
	out("with a larger N. For a short run: go run ./bench -n 100,1000 -grow '' sidebyside")
}

// baseSize is what growth is relative to.
func (b sideBench) baseSize() int {
	all := append(slices.Clone(b.opts.sizes), b.opts.growth...)
	return all[max(0, len(b.opts.sizes)-1)]
}

// compare prints the rows of one configuration.
func (b sideBench) compare(mine, other trial) {
	for _, v := range verbs() {
		m, o := mine.cells[v], other.cells[v]
		b.row(string(mine.shape), strconv.Itoa(mine.n), string(v),
			b.wallOf(m), b.wallOf(o), b.timeRatio(m, o),
			peakOf(m), peakOf(o), ratio(m, o, float64(o.cost.peak), float64(m.cost.peak)),
			ownCost(m, mine.n), target(v, mine.n))
	}
	b.row(string(mine.shape), strconv.Itoa(mine.n), "state",
		size(mine.state), size(other.state), sizeRatio(other.state, mine.state),
		"", "", "", fmt.Sprintf("%d bytes", mine.state/int64(mine.n)), "linear")
}

func target(v verb, n int) string {
	switch {
	case n != targetSize:
	case v == verbPlan, v == verbAgain:
		return "< 1 s, < 200 MB"
	case v == verbApply:
		return "own cost < 1 ms each"
	}
	return ""
}

func (b sideBench) wallOf(c cell) string {
	switch c.verdict {
	case measured:
		return sec(c.cost.wall)
	case overLimit:
		return "> " + short(b.opts.limit)
	case notRun:
	}
	return "-"
}

// short is a duration without the zeros at its end.
func short(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

func peakOf(c cell) string {
	if c.verdict != measured {
		return "-"
	}
	return mb(c.cost.peak)
}

func (b sideBench) timeRatio(m, o cell) string {
	if m.verdict == measured && o.verdict == overLimit {
		return fmt.Sprintf("> %.0fx", float64(b.opts.limit)/float64(m.cost.wall))
	}
	return ratio(m, o, float64(o.cost.wall), float64(m.cost.wall))
}

func ratio(m, o cell, theirs, ours float64) string {
	if m.verdict != measured || o.verdict != measured {
		return "-"
	}
	return fmt.Sprintf("%.1fx", theirs/ours)
}

// ownCost is the processor time of each resource, without that of the
// simulated slices and agents.
func ownCost(c cell, n int) string {
	if c.verdict != measured {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", (c.cost.cpu-c.result.World).Seconds()*1000/float64(n))
}

func size(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f MB", float64(bytes)/1e6)
}

func sizeRatio(theirs, ours int64) string {
	if theirs == 0 || ours == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fx", float64(theirs)/float64(ours))
}

// growth prints how the cost of each resource grows with their number.
func (b sideBench) growth(over slow, base map[shape]trial) error {
	if len(b.opts.growth) == 0 {
		return nil
	}
	b.row("SHAPE", "N", "COMMAND", "OURS", "EACH", "GROWTH", "OUR PEAK", "OWN COST", "STEPS", "WRITES", "OUR TARGET")
	for _, s := range b.opts.shapes {
		first, ok := base[s]
		for _, n := range b.opts.growth {
			if slices.Contains(b.opts.sizes, n) {
				continue
			}
			t, err := b.try(b.fraySimulated(), s, n, over)
			if err != nil {
				return err
			}
			if !ok {
				first, ok = t, true
			}
			b.grown(first, t)
			if err := b.out.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// grown prints one size beside another.
func (b sideBench) grown(first, t trial) {
	each := func(t trial, v verb) float64 { return t.cells[v].cost.wall.Seconds() * 1000 / float64(t.n) }
	for _, v := range verbs() {
		c := t.cells[v]
		if c.verdict != measured {
			b.row(string(t.shape), strconv.Itoa(t.n), string(v), b.wallOf(c))
			continue
		}
		b.row(string(t.shape), strconv.Itoa(t.n), string(v), sec(c.cost.wall), fmt.Sprintf("%.3f ms", each(t, v)),
			ratio(first.cells[v], c, each(t, v), each(first, v)), mb(c.cost.peak),
			ownCost(c, t.n), strconv.Itoa(c.result.Steps), strconv.Itoa(c.result.Saves), "linear: 1x")
	}
	b.row(string(t.shape), strconv.Itoa(t.n), "state", size(t.state), fmt.Sprintf("%d bytes", t.state/int64(t.n)),
		sizeRatio(t.state*int64(first.n), first.state*int64(t.n)), "", "", "", "", "linear: 1x")
}
