package amend_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
)

func TestImportBlocks(t *testing.T) {
	before := files([]schema.Job{at(t, "job.a", gang(2)), at(t, "job.p", from("p", 1))}, pool("p", 1))
	w := newWorld(t, before)
	w.settle()
	starts := len(w.starts)
	held := w.job(address(t, "job.a")).Slices
	pooled := w.job(address(t, "job.p")).Slices
	forget := written(t, schema.Desired{}, "forget job.a", "forget job.p", "forget reservation.p")
	if _, diags := w.amend(amend.Blocks{Config: forget}, schema.Desired{}); len(diags) > 0 {
		t.Fatal(diags)
	}
	w.apply(schema.Desired{})

	after := files([]schema.Job{at(t, "job.b", gang(2), in("a")), at(t, "job.p", from("p", 1))}, pool("p", 1))
	wrong := written(t, after, "import job.b nothing-0-1")
	got, diags := w.amend(amend.Blocks{Config: wrong}, after)
	if len(got) > 0 || !diags.HasErrors() || diags[0].Subject == nil {
		t.Fatalf("got %q, %v, want an error with a place", got, diags)
	}
	for _, says := range []string{"nothing-0-1", held[0] + " (made for job.a)", pooled[0] + " (made for reservation.p)"} {
		if !strings.Contains(diags[0].Detail, says) {
			t.Errorf("got %q, want it to say %q", diags[0].Detail, says)
		}
	}

	cfg := written(t, after, "import job.p "+pooled[0], "import reservation.p "+pooled[0], "import job.b "+held[0]+" , "+held[1])
	got, diags = w.amend(amend.Blocks{Config: cfg}, after)
	want := []string{"import reservation.p " + pooled[0], "import job.b " + strings.Join(held, ","), "import job.p " + pooled[0]}
	if len(diags) > 0 || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, diags, want)
	}
	w.mustStay("after the import", after)
	w.apply(after)
	if len(w.starts) != starts || len(w.ended) > 0 || len(w.doc.Unmanaged) > 0 {
		t.Errorf("started %v, ended %v, unmanaged %v, want nothing", w.starts[starts:], w.ended, w.doc.Unmanaged)
	}
	// What is in the state is not imported, whatever has become of the slices.
	w.preempt(held[0])
	w.preempt(pooled[0])
	if got, diags := w.amend(amend.Blocks{Config: cfg}, after); len(got)+len(diags) > 0 {
		t.Errorf("again: %q, %v, want nothing", got, diags)
	}
}
