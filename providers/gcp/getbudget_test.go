package gcp

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// TestDirectReadsKeepUnderTheirLimit reads 2,000 slices at once, as after a mass
// disappearance: within any minute the service is asked for 600 of them, and what has
// to wait is told for how long, without a call.
func TestDirectReadsKeepUnderTheirLimit(t *testing.T) {
	s := newTPUService(t)
	now := time.Unix(1_700_000_000, 0)
	p := s.provider(t, func(c *Config) { c.Now = func() time.Time { return now } })
	var read []time.Time
	for next := 0; next < 2000; {
		_, found, err := p.Get(t.Context(), tpuSpec(fmt.Sprintf("s-%d", next)))
		switch {
		case err == nil && !found:
			read = append(read, now)
			next++
			now = now.Add(20 * time.Millisecond)
		case providers.KindOf(err) == schema.ErrorRate:
			after := providers.DelayOf(err)
			if after <= 0 || after > time.Minute {
				t.Fatalf("it is to wait for %s", after)
			}
			now = now.Add(after)
		default:
			t.Fatalf("read: found %v, %v", found, err)
		}
	}
	if asked := s.count("GetNode"); asked != len(read) {
		t.Errorf("nodes were read %d times for %d reads", asked, len(read))
	}
	for i := 600; i < len(read); i++ {
		if within := read[i].Sub(read[i-600]); within < time.Minute {
			t.Fatalf("reads %d to %d are within %s", i-600, i, within)
		}
	}
	if took := read[len(read)-1].Sub(read[0]); took > 4*time.Minute {
		t.Errorf("2,000 reads took %s", took)
	}
}

// TestCreatingWhatIsMadeTakesNoTurn asks again and again for a slice that no list shows
// although it was made: that takes none of the turns of others, nor is it rejected, and
// once the slice is gone it is made anew.
func TestCreatingWhatIsMadeTakesNoTurn(t *testing.T) {
	s := newTPUService(t)
	now := time.Unix(1_700_000_000, 0)
	p := s.provider(t, func(c *Config) { c.Now, c.CreatesPerMinute = func() time.Time { return now }, 6 })
	spec := tpuSpec("one")
	create := func() {
		t.Helper()
		if err := p.Create(t.Context(), spec); err != nil {
			t.Fatalf("create: %v", err)
		}
	}
	create()
	s.end(nil)
	for range 20 {
		create()
		now = now.Add(100 * time.Millisecond)
	}
	if asked, read := s.count("CreateNode"), s.count("GetNode"); asked != 1 || read > 1 {
		t.Errorf("the node was asked for %d times and read %d times within two seconds", asked, read)
	}
	now = now.Add(time.Minute)
	s.do(func() { clear(s.nodes) })
	create()
	if asked := s.count("CreateNode"); asked != 2 || len(s.nodes) != 1 {
		t.Errorf("once it was gone it was asked for %d times, want a second one, and there are %d", asked, len(s.nodes))
	}
}
