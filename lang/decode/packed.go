package decode

import (
	"fmt"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// PackedShape decodes which part of a reservation's machines a task asks for, and
// reports whether it asks for one: then it shares the machine with others.
func (e *Decoder) PackedShape(b *configs.Block, s eval.RepetitionData, pool *schema.Reservation, r *schema.Resources) bool {
	for _, name := range partNames() {
		x := b.Attr(name)
		switch {
		case x == nil:
		case pool.Max.TPU != "":
			e.ErrorAt(x.Range, "TPU and "+name, fmt.Sprintf("The slices of %s are %s and bring their own machines: remove %s, or name a reservation of machines without TPU.", pool.Addr, pool.Max.TPU, name))
		case pool.Max.GPU.Count > 0:
			e.ErrorAt(x.Range, "GPU and "+name, fmt.Sprintf("The slices of %s have %s each and are given whole: remove %s, or name a reservation of machines without GPUs.", pool.Addr, pool.Max.GPU, name))
		default:
			r.Packed = true
		}
	}
	if !r.Packed {
		return false
	}
	r.CPU = eval.Get(e, s, b.Attr("cpu"), as.Cores, 1)
	r.Memory = eval.Get(e, s, b.Attr("memory"), as.Bytes, 0)
	r.Disk = eval.Get(e, s, b.Attr("disk"), as.Bytes, 0)
	checkPart(e.Reporter, b, pool, r)
	return true
}

// partNames are the attributes for the share of a machine that a task takes.
func partNames() []string { return []string{"cpu", "memory", "disk"} }

// checkPart reports a task that is larger than the machines of its reservation.
func checkPart(report eval.Reporter, b *configs.Block, pool *schema.Reservation, r *schema.Resources) {
	for _, part := range []struct {
		name, need, has string
		more            bool
	}{
		{"cpu", fmt.Sprintf("%g cores", r.CPU), fmt.Sprintf("%g", pool.Max.CPU), r.CPU > pool.Max.CPU},
		{"memory", r.Memory.String(), pool.Max.Memory.String(), pool.Max.Memory > 0 && r.Memory > pool.Max.Memory},
		{"disk", r.Disk.String(), pool.Max.Disk.String(), pool.Max.Disk > 0 && r.Disk > pool.Max.Disk},
	} {
		if !part.more {
			continue
		}
		rng := b.Range()
		if x := b.Attr(part.name); x != nil {
			rng = x.Range
		}
		report.ErrorAt(rng, "Larger than its reservation", fmt.Sprintf(
			"A task needs %s, but the machines of %s have %s: ask for less, or name another reservation.", part.need, pool.Addr, part.has))
	}
}
