package plan

import (
	"github.com/fray-ml/fray/schema"
)

// Plus returns the sum of two amounts.
func (a Amount) Plus(b Amount) Amount { return a.Times(b, 1) }

// Times adds n times b.
func (a Amount) Times(b Amount, n int) Amount {
	return Amount{
		Slices: a.Slices + n*b.Slices, Hosts: a.Hosts + n*b.Hosts, Chips: a.Chips + n*b.Chips, GPUs: a.GPUs + n*b.GPUs,
		CPU: a.CPU + float64(n)*b.CPU, Memory: a.Memory + schema.Bytes(n)*b.Memory,
	}
}

// Exceeds reports whether a need is more than a limit leaves beside what is used.
func (a Amount) Exceeds(used, limit Amount) bool {
	return limit.Slices > 0 && used.Slices+a.Slices > limit.Slices ||
		limit.GPUs > 0 && a.GPUs > 0 && used.GPUs+a.GPUs > limit.GPUs ||
		limit.CPU > 0 && a.CPU > 0 && used.CPU+a.CPU > limit.CPU ||
		limit.Memory > 0 && a.Memory > 0 && used.Memory+a.Memory > limit.Memory
}
