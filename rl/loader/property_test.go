package loader_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/rl/loader"
)

// Any leases, deaths of workers, restarts and unlocks leave each task where it should be: waiting, with one worker, or done;
// done once each in the end.
func TestLoaderLosesAndDoublesNoTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := loader.Config{
			Length: rapid.IntRange(0, 7).Draw(t, "length"), BatchSize: rapid.IntRange(0, 4).Draw(t, "batch_size"),
			Repeat: rapid.IntRange(1, 3).Draw(t, "repeat"), Passes: rapid.IntRange(1, 2).Draw(t, "passes"),
			Shuffle: rapid.Bool().Draw(t, "shuffle"), KeepBatchOrder: rapid.Bool().Draw(t, "keep_batch_order"), LeaseTTL: time.Minute,
		}
		r := &run{cfg: cfg, now: begin(), leases: map[string]held{}, done: map[string]int{}}
		r.loader = r.fresh(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			r.step(t)
		}
		r.finish(t)
	})
}

// held is a lease as the oracle has it.
type held struct {
	worker, incarnation, task string
	renewed                   time.Time
}

// run is a loader, and an oracle of what was leased and done.
type run struct {
	cfg    loader.Config
	loader *loader.Loader
	now    time.Time
	leases map[string]held
	front  []string // tasks that were put back: the next ones
	done   map[string]int
	added  int
	seen   []string // tasks in the order of their first lease
}

func (r *run) fresh(t *rapid.T) *loader.Loader {
	l, err := loader.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (r *run) step(t *rapid.T) {
	worker := rapid.SampledFrom([]string{"u", "v", "w"}).Draw(t, "worker")
	incarnation := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "incarnation")
	switch rapid.SampledFrom([]string{"next", "next", "exchange", "exchange", "complete", "put back", "renew", "release", "expire", "unlock", "add", "restart"}).Draw(t, "step") {
	case "next":
		r.next(t, worker, incarnation)
	case "exchange":
		r.exchange(t, worker, incarnation)
	case "complete":
		r.end(t, worker, func(id string) bool { return r.loader.Complete(id) }, func(h held) { r.done[h.task]++ })
	case "put back":
		r.end(t, worker, func(id string) bool { return r.loader.PutBack(id) }, func(h held) { r.front = slices.Insert(r.front, 0, h.task) })
	case "renew":
		if got, want := r.loader.Renew(worker, incarnation, r.now), len(r.all(worker, incarnation)); got != want {
			t.Fatalf("%s/%s renewed %d, want %d", worker, incarnation, got, want)
		}
		for id, h := range r.leases {
			if h.worker == worker && h.incarnation == incarnation {
				h.renewed = r.now
				r.leases[id] = h
			}
		}
	case "release":
		r.loader.ReleaseWorker(worker, incarnation)
		r.drop(func(h held) bool { return h.worker == worker && h.incarnation == incarnation })
	case "expire":
		r.now = r.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
		r.loader.PutBackAll(r.loader.Expired(r.now))
		r.drop(func(h held) bool { return r.now.Sub(h.renewed) >= time.Minute })
	case "unlock":
		r.loader.Unlock()
	case "add":
		r.added++
		r.loader.Add([]byte("x"), false)
	case "restart":
		r.restart(t)
	}
	if got := r.loader.Status(); got.Leased != len(r.leases) {
		t.Fatalf("%d leases, want %d", got.Leased, len(r.leases))
	}
}

// all are the leases of a worker, in the order in which they were given; incarnation "" is any.
func (r *run) all(worker, incarnation string) []string {
	return slices.DeleteFunc(r.loaderOrder(), func(id string) bool {
		h := r.leases[id]
		return h.worker != worker || incarnation != "" && h.incarnation != incarnation
	})
}

func (r *run) of(worker, incarnation string) (string, bool) {
	if all := r.all(worker, incarnation); len(all) > 0 {
		return all[0], true
	}
	return "", false
}

// endFormer puts back what other incarnations of a worker have.
func (r *run) endFormer(worker, incarnation string) {
	r.drop(func(h held) bool { return h.worker == worker && h.incarnation != incarnation })
}

func (r *run) next(t *rapid.T, worker, incarnation string) {
	r.endFormer(worker, incarnation)
	grant, ok := r.loader.Next(worker, incarnation, r.now)
	if !ok {
		if len(r.front) > 0 {
			t.Fatalf("no task, want %s, which was put back", r.front[0])
		}
		return
	}
	r.renew(worker, incarnation)
	if id, ok := r.of(worker, incarnation); ok {
		r.isAgain(t, grant, id)
		return
	}
	r.isNew(t, worker, incarnation, grant)
}

// exchange completes some leases, and forgets some others, as where an answer was lost: these come again before new ones.
func (r *run) exchange(t *rapid.T, worker, incarnation string) {
	r.endFormer(worker, incarnation)
	x := loader.Exchange{Worker: worker, Incarnation: incarnation, Want: rapid.IntRange(0, 3).Draw(t, "want")}
	var lost []string
	for _, id := range r.all(worker, incarnation) {
		switch rapid.SampledFrom([]string{"done", "held", "lost"}).Draw(t, "lease") {
		case "done":
			x.Done = append(x.Done, id)
			r.done[r.leases[id].task]++
			delete(r.leases, id)
		case "held":
			x.Held = append(x.Held, id)
		case "lost":
			lost = append(lost, id)
		}
	}
	grants, changed := r.loader.Exchange(x, r.now)
	r.renew(worker, incarnation)
	if again := len(x.Done) > 0; len(grants) > x.Want || len(grants) < x.Want && r.loader.CanReturnItem() || again && !changed {
		t.Fatalf("%+v: %d grants, changed %t, %+v", x, len(grants), changed, r.loader.Status())
	}
	for i, grant := range grants {
		if i < len(lost) {
			r.isAgain(t, grant, lost[i])
			continue
		}
		if !changed {
			t.Fatalf("%+v: a new lease, and the loader has not changed", x)
		}
		r.isNew(t, worker, incarnation, grant)
	}
	if len(grants) < x.Want && len(r.front) > 0 {
		t.Fatalf("%d tasks, want %s, too, which was put back", len(grants), r.front[0])
	}
}

func (r *run) renew(worker, incarnation string) {
	for _, id := range r.all(worker, incarnation) {
		h := r.leases[id]
		h.renewed = r.now
		r.leases[id] = h
	}
}

func (r *run) isAgain(t *rapid.T, grant loader.Grant, id string) {
	if grant.IsNew || grant.Lease.ID != id || grant.Lease.TaskID != r.leases[id].task {
		t.Fatalf("got %+v, want lease %s again", grant, id)
	}
}

func (r *run) isNew(t *rapid.T, worker, incarnation string, grant loader.Grant) {
	task := grant.Lease.TaskID
	for id, h := range r.leases {
		if h.task == task || id == grant.Lease.ID {
			t.Fatalf("task %s is leased to %s and %s", task, h.worker, worker)
		}
	}
	switch {
	case len(r.front) > 0:
		if task != r.front[0] {
			t.Fatalf("task %s, want %s, which was put back", task, r.front[0])
		}
		r.front = r.front[1:]
	case slices.Contains(r.seen, task):
		t.Fatalf("task %s comes again without having been put back", task)
	default:
		r.seen = append(r.seen, task)
	}
	r.leases[grant.Lease.ID] = held{worker, incarnation, task, r.now}
}

func (r *run) end(t *rapid.T, worker string, end func(string) bool, then func(held)) {
	id, ok := r.of(worker, "")
	if !ok {
		id = "unknown"
	}
	if got := end(id); got != ok {
		t.Fatalf("lease %s stood: %t, want %t", id, got, ok)
	}
	if ok {
		h := r.leases[id]
		delete(r.leases, id)
		then(h)
	}
}

// drop puts back the tasks of leases, in the order in which they were leased.
func (r *run) drop(ends func(held) bool) {
	var tasks []string
	for _, l := range r.loaderOrder() {
		if ends(r.leases[l]) {
			tasks = append(tasks, r.leases[l].task)
			delete(r.leases, l)
		}
	}
	r.front = slices.Insert(r.front, 0, tasks...)
}

// loaderOrder are the leases by their numbers.
func (r *run) loaderOrder() []string {
	var ids []string
	for id := range r.leases {
		ids = append(ids, id)
	}
	number := func(id string) (n int) {
		_, _ = fmt.Sscanf(id, "train//0/%d", &n)
		return n
	}
	slices.SortFunc(ids, func(a, b string) int { return number(a) - number(b) })
	return ids
}

func (r *run) restart(t *rapid.T) {
	text, err := json.Marshal(r.loader.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var state loader.State
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	r.loader = r.fresh(t)
	if err := r.loader.Restore(state); err != nil {
		t.Fatal(err)
	}
}

// finish completes all that is left: each task was done once.
func (r *run) finish(t *rapid.T) {
	for _, id := range r.loaderOrder() {
		r.loader.Complete(id)
		r.done[r.leases[id].task]++
	}
	for !r.loader.Status().Finished {
		r.loader.Unlock()
		for {
			grant, ok := r.loader.Next("last", "1", r.now)
			if !ok {
				break
			}
			r.loader.Complete(grant.Lease.ID)
			r.done[grant.Lease.TaskID]++
		}
	}
	want := r.cfg.Length*max(r.cfg.Repeat, 1)*r.cfg.Passes + r.added
	for task, times := range r.done {
		if times != 1 {
			t.Fatalf("task %s was done %d times", task, times)
		}
	}
	if len(r.done) != want || !r.loader.Status().Quiet() || r.loader.Len() != 0 {
		t.Fatalf("%d tasks were done, want %d; %+v", len(r.done), want, r.loader.Status())
	}
}
