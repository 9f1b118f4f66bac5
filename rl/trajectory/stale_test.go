package trajectory_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/trajectory"
)

// of is the header of a task's trajectory by weights of a version, in the group of its item.
func of(task string, version int64) rl.Header {
	h := grouped(task[:len(task)-2])
	h.TaskID, h.Lease, h.Version = task, "lease of "+task, &version
	return h
}

func evicted(p *trajectory.Pool) []string {
	var out []string
	for _, task := range p.Evicted() {
		out = append(out, task.TaskID)
	}
	return out
}

func TestN61_OldTrajectoriesAreRolledOutAgain(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 2, BatchSize: 2, Ready: rl.BatchSizeReached})
	put(t, p, of("0/0/0", 0), "a")
	put(t, p, of("0/0/1", 1), "b") // its group is complete
	put(t, p, of("0/1/0", 0), "c")
	put(t, p, rl.Header{TaskID: "0/2/0", Keys: map[string]any{"group_id": "0/2"}}, "d") // its version is not known
	p.SetFloor("", 1)
	wantNames(t, evicted(p), "0/0/0", "0/1/0")
	wantNames(t, names(t, p, trajectory.Query{}))
	if got := put(t, p, of("0/3/0", 0), "e"); got != rl.ReRollout {
		t.Errorf("a trajectory of old weights: %q, want re-rollout", got)
	}
	if got := put(t, p, of("0/0/0", 1), "f"); got != rl.Success {
		t.Errorf("the evicted task again: %q, want success", got)
	}
	wantNames(t, names(t, p, trajectory.Query{}), "b", "f")
	if got := put(t, p, of("0/0/0", 1), "f"); got != rl.Success || p.Status("").Samples != 1 {
		t.Errorf("the same once more: %q, %d samples; want it to be known", got, p.Status("").Samples)
	}
}

// Until the loader knows of a task, the pool is not empty, and no batch is made of what seems to be all that was loaded.
func TestN61_TasksOnTheirWayToTheLoaderCount(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 2})
	put(t, p, of("0/0/0", 0), "a")
	put(t, p, of("0/0/1", 1), "b")
	p.SetFloor("", 1)
	wantNames(t, names(t, p, trajectory.Query{Quiet: true, Finished: true}))
	if got := p.Status("default"); got.Evicted != 1 || got.Incomplete != 1 {
		t.Errorf("%+v, want one task on its way, and its group incomplete", got)
	}
	p.Returned(1)
	wantNames(t, names(t, p, trajectory.Query{Quiet: true, Finished: true}), "b")
	if p.Ack("pool/0/0"); !p.IsEmpty("") {
		t.Errorf("%+v, want an empty pool", p.Status(""))
	}
}

// A batch that weight sync does not count leaves no trace but what is too old in it.
func TestN61_RejectedBatch(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReached})
	for i, version := range []int64{0, 2, 1, 2} {
		put(t, p, of(rl.TaskID(0, i, 0), version), fmt.Sprint(i))
	}
	answer, err := p.Take(trajectory.Query{Consumer: "processor"})
	if err != nil || answer.Oldest == nil || *answer.Oldest != 0 {
		t.Fatalf("%+v, %v; want a batch with version 0", answer, err)
	}
	p.Reject(answer.Batch.ID, 1)
	wantNames(t, evicted(p), "0/0/0")
	wantNames(t, names(t, p, trajectory.Query{}), "1", "2")
	p.NoteNotified(answer.Batch.ID)
	p.Reject(answer.Batch.ID, 9)
	if got := p.Status(""); got.Samples != 1 || got.Unacked != 0 {
		t.Errorf("%+v after the batch is rejected again, want the one sample that is left", got)
	}
}

// One batch may be trained on after a later one if another consumer processes it.
func TestN61_LaterBatchWaitsForAnOlderOne(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached})
	put(t, p, of("0/0/0", 0), "a")
	put(t, p, of("0/1/0", 5), "b")
	wantNames(t, names(t, p, trajectory.Query{Consumer: "p"}), "a")
	p.NoteNotified("pool/0/0")
	p.SetFloor("", 1)
	wantNames(t, names(t, p, trajectory.Query{Consumer: "q"}))
	p.Ack("pool/0/0")
	wantNames(t, names(t, p, trajectory.Query{Consumer: "q"}), "b")
}

// A task with several trajectories is rolled out again as a whole, and not at all once a batch has one of them.
func TestN61_SeveralTrajectoriesOfATask(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached})
	for i, task := range []string{"0/0/0", "0/0/0", "0/1/0", "0/1/0"} {
		put(t, p, of(task, int64(i%2)), fmt.Sprint(i))
	}
	wantNames(t, names(t, p, trajectory.Query{}), "0")
	p.SetFloor("", 2)
	wantNames(t, evicted(p), "0/1/0")
	if got := p.Status(""); got.Samples != 0 {
		t.Errorf("%+v, want that nothing old is left", got)
	}
}

// Any puts, floors, batches of two consumers, lost trajectories and restarts: each task is trained on once, in a whole group, by
// weights that are behind by the threshold at most.
func TestN61_StalenessIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const groupSize, groups = 2, 8
		r := &aging{
			cfg:       trajectory.Config{Name: "pool", KeyList: []string{"group_id"}, GroupSize: groupSize, BatchSize: 2 * groupSize, Ready: rl.BatchSizeReached},
			threshold: rapid.Int64Range(0, 3).Draw(t, "threshold"), trained: map[string]int{}, oldest: map[string]int64{},
		}
		for i := range groups * groupSize {
			r.tasks = append(r.tasks, rl.TaskID(0, i/groupSize, i%groupSize))
		}
		r.pool, r.shadow = r.fresh(t), r.fresh(t)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			r.step(t)
		}
		r.finish(t)
		if got, want := text(t, r.shadow), text(t, r.pool); got != want {
			t.Fatalf("replayed, the pool is %s, want %s", got, want)
		}
		for i := range groups * groupSize {
			if task := rl.TaskID(0, i/groupSize, i%groupSize); r.trained[task] != 1 {
				t.Fatalf("task %s was trained on %d times", task, r.trained[task])
			}
		}
	})
}

// aging is a pool with a loader, workers, weight sync and a trainer around it, of which each batch is one update.
type aging struct {
	cfg              trajectory.Config
	pool, shadow     *trajectory.Pool
	threshold        int64
	tasks            []string // that the loader has
	rolling          []rl.Header
	counted, updates int64
	serving          int64 // version that rollouts have
	held             []*rl.Batch
	oldest           map[string]int64 // of batches
	trained          map[string]int
}

func (r *aging) fresh(t *rapid.T) *trajectory.Pool {
	p, err := trajectory.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *aging) both(do func(*trajectory.Pool)) {
	do(r.pool)
	do(r.shadow)
}

func (r *aging) floor() int64 { return max(0, r.counted-r.threshold) }

func (r *aging) step(t *rapid.T) {
	switch rapid.SampledFrom([]string{"lease", "lease", "put", "put", "put", "take", "train", "sync", "return", "restart"}).Draw(t, "step") {
	case "lease":
		r.lease()
	case "put":
		if len(r.rolling) > 0 {
			r.put(t, rapid.IntRange(0, len(r.rolling)-1).Draw(t, "worker"))
		}
	case "take":
		r.take(t, rapid.SampledFrom([]string{"p", "q"}).Draw(t, "consumer"), rapid.Bool().Draw(t, "dies"))
	case "train":
		if len(r.held) > 0 {
			r.train(t, rapid.IntRange(0, len(r.held)-1).Draw(t, "batch"))
		}
	case "sync":
		r.serving = max(r.serving, r.updates)
		r.both(func(p *trajectory.Pool) { p.Unlock("", r.floor(), begin()) })
	case "return":
		r.giveBack()
	case "restart":
		r.restart(t)
	}
}

func (r *aging) lease() {
	if len(r.tasks) > 0 {
		r.rolling = append(r.rolling, of(r.tasks[0], r.serving))
		r.tasks = r.tasks[1:]
	}
}

// put puts a trajectory. One that is to be rolled out again is, by weights that are new enough.
func (r *aging) put(t *rapid.T, i int) {
	h := r.rolling[i]
	verdict, err := r.pool.Admit(h, []byte(h.TaskID))
	if err != nil || verdict.Wait || verdict.Outcome == rl.Fail {
		t.Fatalf("put of %s: %+v, %v", h.TaskID, verdict, err)
	}
	if verdict.Outcome == rl.ReRollout {
		r.serving = max(r.serving, r.floor())
		r.rolling[i] = of(h.TaskID, r.serving)
		return
	}
	if verdict.Outcome == "" {
		r.both(func(p *trajectory.Pool) { p.Store(h, []byte(h.TaskID), begin()) })
	}
	r.rolling = slices.Delete(r.rolling, i, i+1)
}

// take takes a batch, which weight sync counts unless it is too old. The pool may die before it has noted that.
func (r *aging) take(t *rapid.T, consumer string, dies bool) {
	q := trajectory.Query{Consumer: consumer, Now: begin()}
	answer, err := r.pool.Take(q)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Changed {
		if _, err := r.shadow.Take(q); err != nil {
			t.Fatal(err)
		}
	}
	b := answer.Batch
	if b == nil || answer.Notified {
		return
	}
	if _, counted := r.oldest[b.ID]; !counted {
		if *answer.Oldest < r.floor() {
			r.both(func(p *trajectory.Pool) { p.Reject(b.ID, r.floor()) })
			return
		}
		r.counted++
		r.oldest[b.ID] = *answer.Oldest
	}
	if dies {
		return
	}
	r.held = append(r.held, b)
	r.both(func(p *trajectory.Pool) { p.NoteNotified(b.ID); p.SetFloor("default", r.floor()) })
}

// train trains on any batch that is being processed, as the fastest processor would have it.
func (r *aging) train(t *rapid.T, i int) {
	b := r.held[i]
	if lag := r.updates - r.oldest[b.ID]; lag > r.threshold {
		t.Fatalf("batch %s is trained on with a lag of %d, want at most %d", b.ID, lag, r.threshold)
	}
	r.updates++
	groups := map[any]int{}
	for _, h := range b.Headers {
		r.trained[h.TaskID]++
		groups[h.Keys["group_id"]]++
	}
	for group, n := range groups {
		if n != r.cfg.GroupSize {
			t.Fatalf("batch %s has %d of group %v", b.ID, n, group)
		}
	}
	r.both(func(p *trajectory.Pool) { p.Ack(b.ID) })
	r.held = slices.Delete(r.held, i, i+1)
}

func (r *aging) giveBack() {
	tasks := r.pool.Evicted()
	for _, task := range tasks {
		r.tasks = append(r.tasks, task.TaskID)
	}
	if len(tasks) > 0 {
		r.both(func(p *trajectory.Pool) { p.Returned(tasks[len(tasks)-1].Number) })
	}
}

func (r *aging) restart(t *rapid.T) {
	state, payloads := r.shadow.Snapshot()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var read trajectory.State
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	r.pool = r.fresh(t)
	if err := r.pool.Restore(read, payloads); err != nil {
		t.Fatal(err)
	}
}

// finish goes on until all is trained on.
func (r *aging) finish(t *rapid.T) {
	for range 1000 {
		r.giveBack()
		r.lease()
		if len(r.rolling) > 0 {
			r.put(t, 0)
		}
		r.take(t, "p", false)
		r.take(t, "q", false)
		if len(r.held) > 0 {
			r.train(t, len(r.held)-1)
		}
		if len(r.tasks)+len(r.rolling)+len(r.held) == 0 && r.pool.IsEmpty("") {
			return
		}
	}
	t.Fatalf("the run does not end: %d tasks, %d rolled out, %+v", len(r.tasks), len(r.rolling), r.pool.Status(""))
}
