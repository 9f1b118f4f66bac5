package snapshot

import (
	"math"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Who gets capacity first: production before interactive before batch; within a
// band the namespace that uses the least of what it is due, and in it the user of
// whom that is so; then priority, then who was there first, then the address
// (queue.go). What a namespace uses is its dominant share (Ghodsi et al., Dominant
// Resource Fairness, NSDI 2011): of all chips or of all cores, whichever is more,
// divided by its weight. It counts what its jobs hold, whether or not it is up,
// and rises while a Diff hands out (progressive filling).
//
// A namespace's max is never exceeded (budget.go). What is beyond its budget
// counts as batch. Who is first and finds no room may make some (victim.go).

// Load is an amount of capacity in whole numbers, so that sums of it depend on
// no order.
type Load struct {
	Slices int
	Chips  int // of TPUs, and GPUs: what namespaces share and budgets bound
	GPUs   int // those of Chips that are GPUs
	Milli  int // thousandths of cores of hosts without TPUs
	Memory int // bytes
}

// Plus returns the sum of two loads.
func (l Load) Plus(m Load, n int) Load {
	return Load{Slices: l.Slices + n*m.Slices, Chips: l.Chips + n*m.Chips, GPUs: l.GPUs + n*m.GPUs, Milli: l.Milli + n*m.Milli, Memory: l.Memory + n*m.Memory}
}

// Exceeds reports whether need does not fit beside used into limit, whose zero
// parts bound nothing.
func (l Load) Exceeds(used, limit Load) bool {
	over := func(need, used, limit int) bool { return limit > 0 && need > 0 && used+need > limit }
	return over(l.Slices, used.Slices, limit.Slices) || over(l.Chips, used.Chips, limit.Chips) || over(l.GPUs, used.GPUs, limit.GPUs) ||
		over(l.Milli, used.Milli, limit.Milli) || over(l.Memory, used.Memory, limit.Memory)
}

// Milli returns cores in thousandths.
func Milli(cores float64) int { return int(math.Round(1000 * cores)) }

// LimitLoad returns a limit as a load: one of GPUs bounds no TPU chips.
func LimitLoad(limit plan.Amount) Load {
	l := LoadOf(limit)
	l.Chips = limit.Chips
	return l
}

// LoadOf returns the load of slices.
func LoadOf(a plan.Amount) Load {
	return Load{Slices: a.Slices, Chips: a.Chips + a.GPUs, GPUs: a.GPUs, Milli: Milli(a.CPU), Memory: int(a.Memory)}
}

// SliceLoad is what one slice takes; of a machine type, the cores that its name ends in.
func (d *Draft) SliceLoad(spec *schema.SliceSpec) Load {
	l := LoadOf(d.AmountOf(spec))
	if spec.TPU == "" && spec.GPU.Count == 0 && spec.CPU == 0 {
		if n, err := strconv.Atoi(spec.MachineType[strings.LastIndexByte(spec.MachineType, '-')+1:]); err == nil {
			l.Milli = 1000 * n
		}
	}
	return l
}

// LoadOf is what each slice of a job takes by what its resources name.
func (d *Draft) LoadOf(j *schema.Job) Load {
	r := &j.Resources
	return d.SliceLoad(&schema.SliceSpec{TPU: r.TPU, GPU: r.GPU, CPU: r.CPU, Memory: r.Memory, MachineType: r.MachineType})
}
