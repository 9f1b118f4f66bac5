package web

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// An index that is taken over from an earlier frame is what is made anew, whatever changed.
func TestIndexFollowsTheFormer(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	snap := makeUp(120, testTime)
	before := newFrame(snap, 1)
	before.look()
	for step := range 60 {
		snap = changed(snap, random)
		next := newFrame(snap, 1)
		next.before.Store(before.built.Load())
		got, want := listsOf(t, next), listsOf(t, newFrame(snap, 1))
		if got != want {
			t.Fatalf("step %d: got\n%s\nwant\n%s", step, got, want)
		}
		before = next
	}
}

// listsOf is all that is made of an index.
func listsOf(t *testing.T, f *frame) string {
	t.Helper()
	x := f.look()
	q := jobQuery{}
	var out struct {
		Jobs   []JobRow
		Slices []SliceRow
		Below  map[string][]JobRow
	}
	out.Below = map[string][]JobRow{}
	rows, _ := x.selected(&q)
	for _, r := range rows {
		out.Jobs = append(out.Jobs, r.row(&q))
		var under []JobRow
		below(x.byID[r.job.ID], x.byID[r.job.ID].depth, &under)
		out.Below[r.job.ID] = under
	}
	out.Slices, _ = f.sliceList()
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// changed is a snapshot after one random change.
func changed(snap *Snapshot, random *rand.Rand) *Snapshot {
	next := *snap
	next.Doc = snap.Doc.Clone()
	p := *snap.Plan
	next.Plan = &p
	all := slices.SortedFunc(maps.Keys(next.Doc.Jobs), schema.Address.Compare)
	addr := all[random.IntN(len(all))]
	j := *next.Doc.Jobs[addr]
	switch random.IntN(7) {
	case 0: // it ends
		j.Status, j.Slices, j.EndedAt = schema.JobSucceeded, nil, testTime
		next.Doc.Jobs[addr] = &j
	case 1: // it has gone
		delete(next.Doc.Jobs, addr)
	case 2: // another one has its name
		next.Doc.Past[j.ID] = &j
		fresh := j
		fresh.ID += "-again"
		next.Doc.Jobs[addr] = &fresh
	case 3: // a slice moved
		for _, name := range j.Slices {
			was := next.Doc.Slices[name]
			if was == nil {
				continue
			}
			s := *was
			s.Spec.Zone = "us-south1-a"
			next.Doc.Slices[name] = &s
		}
	case 4: // it waits for something else
		p.Pending = append([]plan.Pending{{Addr: addr, Reasons: []string{"quota"}, Blocked: true}}, p.Pending...)
	case 5: // what launched it is another one
		if j.Launch != nil {
			launch := *j.Launch
			launch.Parent = ""
			j.Launch = &launch
			next.Doc.Jobs[addr] = &j
		}
	case 6: // a slice has gone
		for _, name := range j.Slices {
			delete(next.Doc.Slices, name)
		}
	}
	return &next
}

// A stack whose frames take long to make is shown less often.
func TestPaceOfLargeStacks(t *testing.T) {
	s := pageOf(t, makeUp(3, testTime), nil)
	for took, want := range map[time.Duration]time.Duration{0: time.Second, 50 * time.Millisecond: time.Second, 400 * time.Millisecond: 4 * time.Second, time.Minute: maxPace} {
		s.current.Load().took.Store(int64(took))
		if got := s.pace(); got != want {
			t.Errorf("after %s: got %s, want %s", took, got, want)
		}
	}
}

// Slices come in pages, filtered by the controller, and cells only of zones with few.
func TestSlicePages(t *testing.T) {
	snap := makeUp(200, testTime)
	s := pageOf(t, snap, nil)
	all := decode[SliceList](t, s, "/api/v1/slices")
	if all.Total != len(snap.Doc.Slices) || len(all.Slices) != all.Total || all.Matched != all.Total {
		t.Fatalf("got %d of %d, want all %d", len(all.Slices), all.Total, len(snap.Doc.Slices))
	}
	var names []string
	for offset := 0; offset < all.Total; offset += 50 {
		page := decode[SliceList](t, s, "/api/v1/slices?limit=50&offset="+plain(float64(offset)))
		for _, row := range page.Slices {
			names = append(names, row.Name)
		}
	}
	if len(names) != all.Total {
		t.Errorf("pages have %d slices, want %d", len(names), all.Total)
	}
	for i, row := range all.Slices {
		if i < len(names) && names[i] != row.Name {
			t.Fatalf("row %d of the pages is %s, want %s", i, names[i], row.Name)
		}
	}
	some := decode[SliceList](t, s, "/api/v1/slices?q=IDLE+europe&limit=2")
	if some.Matched == 0 || some.Matched > 7 || len(some.Slices) > 2 || some.Slices[0].Zone != "europe-west4-b" || !some.Slices[0].Idle {
		t.Errorf("got %+v", some)
	}
	none := decode[SliceList](t, s, "/api/v1/slices?summary=true&cells=3")
	cells := decode[SliceList](t, s, "/api/v1/slices?summary=true&cells=400")
	n := 0
	for i, z := range cells.Zones {
		n += len(z.Cells)
		if len(none.Zones[i].Cells) > 0 {
			t.Errorf("zone %s has cells", z.Zone)
		}
	}
	if n != all.Total || len(cells.Slices) != 0 {
		t.Errorf("got %d cells and %d slices, want %d cells", n, len(cells.Slices), all.Total)
	}
	if w := ask(s, "/api/v1/slices?limit=many", nil); w.Code != 400 {
		t.Errorf("got %d", w.Code)
	}
}
