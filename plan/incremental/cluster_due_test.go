package incremental

import (
	"math"
	"testing"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
)

// What each namespace is due of what all compete for, computed from nothing but
// what they ask for: band by band, water is poured on all of them alike, by their
// weights, until what there is is used up (weighted max-min fairness, which is
// Dominant Resource Fairness where each wants one resource). It is summed up over
// time and compared with what they had.

// wish is what a namespace wants of one resource, band by band.
type wish struct {
	weight float64
	base   float64                     // that it has elsewhere of what is shared
	shared [capacity.BandCount]float64 // that it wants: chips, or cores
	slices [capacity.BandCount]float64 // that these are, of what is scarce: slices, or cores
}

// due is how much of what is shared each gets of so much that is scarce.
func due(wishes []wish, scarce float64) []float64 {
	got := make([]float64, len(wishes))
	for band := range capacity.BandCount {
		pour := func(level float64) (slices float64, shared []float64) {
			shared = make([]float64, len(wishes))
			for i := range wishes {
				w := &wishes[i]
				if want := w.shared[band]; want > 0 {
					shared[i] = min(want, max(0, level*w.weight-w.base-got[i]))
					slices += shared[i] * w.slices[band] / want
				}
			}
			return slices, shared
		}
		low, high := 0.0, 1.0
		for all, _ := pour(math.MaxFloat32); high < math.MaxFloat32; high *= 2 {
			if slices, _ := pour(high); slices >= min(all, scarce) {
				break
			}
		}
		for range 50 {
			if slices, _ := pour((low + high) / 2); slices > scarce {
				high = (low + high) / 2
			} else {
				low = (low + high) / 2
			}
		}
		slices, shared := pour(low)
		if slices < 0.999*scarce { // all that is wanted, as it may be
			slices, shared = pour(high)
		}
		for i := range got {
			got[i] += shared[i]
		}
		scarce = max(0, scarce-slices)
	}
	return got
}

// limit takes out what a namespace may not have, and has what is beyond its
// budget count as batch.
func (w *wish) limit(n *schema.Namespace) {
	cut := func(most float64, moves bool) {
		left := max(0, most-w.base)
		for band := range capacity.BandCount {
			batch := capacity.BandCount - 1
			if w.shared[band] <= left || moves && band == batch {
				left -= min(left, w.shared[band])
				continue
			}
			part := (w.shared[band] - left) / w.shared[band]
			shared, slices := part*w.shared[band], part*w.slices[band]
			w.shared[band], w.slices[band] = w.shared[band]-shared, w.slices[band]-slices
			if moves {
				w.shared[batch], w.slices[batch] = w.shared[batch]+shared, w.slices[batch]+slices
			}
			left = 0
		}
	}
	if n.MaxChips > 0 {
		cut(float64(n.MaxChips), false)
	}
	if n.Budget > 0 {
		cut(float64(n.Budget), true)
	}
}

func TestDue(t *testing.T) {
	wants := func(weight float64, bands ...float64) wish {
		w := wish{weight: weight}
		copy(w.shared[:], bands)
		copy(w.slices[:], bands)
		return w
	}
	based := func(w wish, base float64) wish {
		w.base = base
		return w
	}
	small, large := wants(1, 0, 400), wants(1, 0, 400)
	small.slices[1], large.slices[1] = 100, 25 // of 4 chips, and of 16
	limited, budgeted := wants(1, 10, 50), wants(1, 30, 0, 5)
	limited.limit(&schema.Namespace{MaxChips: 20})
	budgeted.limit(&schema.Namespace{Budget: 20})
	tests := map[string]struct {
		wishes []wish
		scarce float64
		want   []float64
	}{
		"by weight":                        {[]wish{wants(1, 99), wants(2, 99), wants(3, 99)}, 60, []float64{10, 20, 30}},
		"what one does not want":           {[]wish{wants(1, 5), wants(1, 99), wants(1, 99)}, 65, []float64{5, 30, 30}},
		"enough for all":                   {[]wish{wants(1, 5), wants(3, 7, 8)}, 65, []float64{5, 15}},
		"nothing":                          {[]wish{wants(1, 5), wants(3, 7, 8)}, 0, []float64{0, 0}},
		"the higher band first":            {[]wish{wants(1, 40), wants(1, 0, 0, 99)}, 60, []float64{40, 20}},
		"what is had in it counts":         {[]wish{wants(1, 20, 99), wants(1, 0, 99)}, 60, []float64{30, 30}},
		"what is had elsewhere counts":     {[]wish{based(wants(1, 99), 20), wants(1, 99)}, 60, []float64{20, 40}},
		"chips are shared, and slices few": {[]wish{small, large}, 10, []float64{32, 32}},
		"no more than its max":             {[]wish{limited, wants(1, 0, 99)}, 60, []float64{20, 40}},
		"beyond the budget as batch":       {[]wish{budgeted, wants(1, 0, 35)}, 60, []float64{25, 35}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := due(test.wishes, test.scarce)
			for i := range got {
				if math.Abs(got[i]-test.want[i]) > 0.1 {
					t.Fatalf("got %v, want %v", got, test.want)
				}
			}
		})
	}
}
