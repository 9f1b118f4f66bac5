package trajectory_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/trajectory"
)

// oracle is what a pool should hold, as a list of trajectories that is searched whole.
type oracle struct {
	size     int
	live     []*known
	opened   map[string]int // groups of a model and key so far
	events   int
	batches  map[string][]string // not acknowledged
	owner    map[string]string
	order    []string // of batches
	tags     []string
	locked   map[string]bool
	accepted map[string]bool // task and model
	given    map[string]int  // how often a name was in a new batch
	stored   int
	dropped  int
}

// known is one trajectory. Its group was released at event released, unless that is 0.
type known struct {
	name, tag, group string
	opened, released int
	partial          bool
}

func newOracle(size int) *oracle {
	return &oracle{
		size: size, opened: map[string]int{}, batches: map[string][]string{}, owner: map[string]string{}, locked: map[string]bool{},
		accepted: map[string]bool{}, given: map[string]int{},
	}
}

func (o *oracle) members(group string) []*known {
	var out []*known
	for _, k := range o.live {
		if k.group == group && k.released == 0 {
			out = append(out, k)
		}
	}
	return out
}

func (o *oracle) put(tag, key, name, task string) rl.Outcome {
	switch {
	case task != "" && o.accepted[task+" "+tag]:
		return rl.Success
	case o.locked[tag]:
		return rl.ReRollout
	}
	o.accepted[task+" "+tag] = true
	if !slices.Contains(o.tags, tag) {
		o.tags = append(o.tags, tag)
	}
	o.events++
	o.stored++
	group := tag + " " + key
	k := &known{name: name, tag: tag, group: group, opened: o.events}
	if others := o.members(group); len(others) > 0 {
		k.opened = others[0].opened
	}
	o.live = append(o.live, k)
	if all := o.members(group); len(all) == o.size {
		for _, k := range all {
			k.released = o.events
		}
	}
	return rl.Success
}

func (o *oracle) flush(tag string, policy rl.IncompletePolicy) {
	o.events++
	for _, k := range slices.Clone(o.live) {
		if k.tag != tag || k.released != 0 {
			continue
		}
		if policy == rl.Flush {
			k.released, k.partial = o.events, true
		} else {
			o.remove(k)
		}
	}
}

func (o *oracle) remove(k *known) {
	o.live = slices.DeleteFunc(o.live, func(other *known) bool { return other == k })
	o.dropped++
}

// released are a model's, in order: as their groups were released, and these as they were opened.
func (o *oracle) released(tag string) []*known {
	var out []*known
	for _, k := range o.live {
		if k.tag == tag && k.released != 0 {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b *known) int {
		return cmp.Or(cmp.Compare(a.released, b.released), cmp.Compare(a.opened, b.opened))
	})
	return out
}

// take returns the names of the batch that a consumer should get, and the ID that it should have if it is an old one.
func (o *oracle) take(cfg trajectory.Config, q trajectory.Query) (want []string, id string) {
	for _, owner := range []string{q.Consumer, ""} {
		for _, id := range o.order {
			if q.Consumer != "" && o.owner[id] == owner && (q.Tag == "" || o.tagOf(id) == q.Tag) {
				o.owner[id] = q.Consumer
				return o.batches[id], id
			}
		}
	}
	tags := o.tags
	if q.Tag != "" {
		tags = []string{q.Tag}
	}
	for _, tag := range tags {
		if q.Quiet {
			o.flush(tag, cfg.Policy)
		}
		all := o.released(tag)
		n := 0
		switch {
		case cfg.Ready == rl.LoadedBatchFinished && q.Quiet:
			n = len(all)
		case cfg.Ready == rl.BatchSizeReached && len(all) >= cfg.BatchSize, cfg.Ready == rl.BatchSizeReachedAndLoadedBatchFinished && q.Quiet && len(all) >= cfg.BatchSize:
			n = cfg.BatchSize
		case q.Quiet && q.Finished && cfg.Policy == rl.Flush:
			n = len(all)
		case q.Quiet && q.Finished:
			for _, k := range all {
				o.remove(k)
			}
		}
		if n == 0 {
			continue
		}
		for _, k := range all[:n] {
			want = append(want, k.name)
			o.given[k.name]++
			o.live = slices.DeleteFunc(o.live, func(other *known) bool { return other == k })
		}
		return want, ""
	}
	return nil, ""
}

func (o *oracle) tagOf(id string) string { return o.owner["tag "+id] }

// Any puts, locks, batches, deaths of consumers and restarts leave the pool with what the oracle has: no trajectory is lost or
// doubled, groups are released at their size and in order.
func TestPoolFollowsItsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := trajectory.Config{
			Name: "pool", KeyList: []string{"group_id"}, GroupSize: rapid.IntRange(1, 4).Draw(t, "group_size"),
			BatchSize: rapid.IntRange(1, 6).Draw(t, "batch_size"),
			Ready:     rapid.SampledFrom([]rl.Readiness{rl.BatchSizeReached, rl.LoadedBatchFinished, rl.BatchSizeReachedAndLoadedBatchFinished}).Draw(t, "ready"),
			Policy:    rapid.SampledFrom([]rl.IncompletePolicy{rl.Flush, rl.Drop}).Draw(t, "policy"),
		}
		r := &run{cfg: cfg, want: newOracle(cfg.GroupSize)}
		r.pool, r.shadow = r.fresh(t), r.fresh(t)
		steps := rapid.IntRange(1, 80).Draw(t, "steps")
		for range steps {
			r.step(t)
		}
		r.drain(t)
	})
}

// run is a pool beside its oracle, and beside a shadow that is only given what has changed the pool, as a journal is.
type run struct {
	cfg          trajectory.Config
	pool, shadow *trajectory.Pool
	want         *oracle
	puts         int
	now          time.Time
}

func (r *run) fresh(t *rapid.T) *trajectory.Pool {
	p, err := trajectory.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *run) step(t *rapid.T) {
	tag := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tag")
	consumer := rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "consumer")
	switch rapid.SampledFrom([]string{"put", "put", "put", "put", "put", "again", "take", "take", "lock", "unlock", "ack", "release", "flush", "restart"}).Draw(t, "step") {
	case "put":
		r.puts++
		r.put(t, tag, fmt.Sprintf("0/%d/0", r.puts))
	case "again":
		if r.puts > 0 {
			r.put(t, tag, fmt.Sprintf("0/%d/0", rapid.IntRange(1, r.puts).Draw(t, "task")))
		}
	case "take":
		quiet := rapid.Bool().Draw(t, "quiet")
		r.take(t, trajectory.Query{Tag: rapid.SampledFrom([]string{"", tag}).Draw(t, "asked"), Consumer: consumer, Quiet: quiet, Finished: quiet && rapid.Bool().Draw(t, "finished")})
	case "lock":
		r.both(func(p *trajectory.Pool) { p.Lock(tag) })
		r.want.locked[tag] = true
	case "unlock":
		r.both(func(p *trajectory.Pool) { p.Unlock(tag, 0, r.now) })
		delete(r.want.locked, tag)
	case "ack":
		r.ack(t)
	case "release":
		r.both(func(p *trajectory.Pool) { p.Release(consumer) })
		for _, id := range r.want.order {
			if consumer != "" && r.want.owner[id] == consumer {
				r.want.owner[id] = ""
			}
		}
	case "flush":
		policy := rapid.SampledFrom([]rl.IncompletePolicy{rl.Flush, rl.Drop}).Draw(t, "flush")
		r.both(func(p *trajectory.Pool) { p.Flush(tag, policy) })
		r.want.flush(tag, policy)
	case "restart":
		r.restart(t)
	}
	r.compare(t)
}

func (r *run) both(do func(*trajectory.Pool)) {
	do(r.pool)
	do(r.shadow)
}

func (r *run) put(t *rapid.T, tag, task string) {
	key := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "key")
	h := rl.Header{ModelTag: tag, Keys: map[string]any{"group_id": key}, TaskID: task}
	payload := []byte(task + tag)
	verdict, err := r.pool.Admit(h, payload)
	if err != nil || verdict.Wait {
		t.Fatalf("put: %+v, %v", verdict, err)
	}
	want := r.want.put(tag, key, string(payload), task)
	if verdict.Outcome == "" {
		r.both(func(p *trajectory.Pool) { p.Store(h, payload, r.now) })
		verdict.Outcome = rl.Success
	}
	if verdict.Outcome != want {
		t.Fatalf("put of task %s for %s: %s, want %s", task, tag, verdict.Outcome, want)
	}
}

func (r *run) take(t *rapid.T, q trajectory.Query) {
	answer, err := r.pool.Take(q)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Changed {
		if _, err := r.shadow.Take(q); err != nil {
			t.Fatal(err)
		}
	}
	want, id := r.want.take(r.cfg, q)
	if answer.Batch == nil {
		if want != nil {
			t.Fatalf("no batch, want %q", want)
		}
		return
	}
	var got []string
	for _, payload := range answer.Batch.Payloads {
		got = append(got, string(payload))
	}
	if r.cfg.Ready == rl.LoadedBatchFinished {
		slices.Sort(got) // its order is that of the data
		want = slices.Sorted(slices.Values(want))
	}
	if !slices.Equal(got, want) || id != "" && id != answer.Batch.ID {
		t.Fatalf("batch %s has %q, want %q with ID %q", answer.Batch.ID, got, want, id)
	}
	tag, _ := answer.Batch.Metadata["model_tag"].(string)
	if q.Consumer != "" && id == "" {
		r.want.order = append(r.want.order, answer.Batch.ID)
		r.want.batches[answer.Batch.ID], r.want.owner[answer.Batch.ID], r.want.owner["tag "+answer.Batch.ID] = want, q.Consumer, tag
	}
}

func (r *run) ack(t *rapid.T) {
	if len(r.want.order) == 0 {
		return
	}
	id := rapid.SampledFrom(r.want.order).Draw(t, "batch")
	r.both(func(p *trajectory.Pool) { p.Ack(id) })
	r.want.order = slices.DeleteFunc(r.want.order, func(other string) bool { return other == id })
	if r.pool.Ack(id) {
		t.Fatalf("batch %s is acknowledged twice", id)
	}
}

// restart has the pool be what its snapshot says, by way of JSON.
func (r *run) restart(t *rapid.T) {
	state, payloads := r.pool.Snapshot()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var read trajectory.State
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	p := r.fresh(t)
	if err := p.Restore(read, payloads); err != nil {
		t.Fatal(err)
	}
	r.pool = p
}

func (r *run) compare(t *rapid.T) {
	for _, tag := range []string{"a", "b"} {
		samples := 0
		for _, k := range r.want.live {
			if k.tag == tag {
				samples++
			}
		}
		unacked := 0
		for _, id := range r.want.order {
			if r.want.tagOf(id) == tag {
				unacked++
			}
		}
		got := r.pool.Status(tag)
		if got.Samples != samples || got.Unacked != unacked || got.Locked != r.want.locked[tag] {
			t.Fatalf("model %s: %+v, want %d samples and %d batches, locked %t", tag, got, samples, unacked, r.want.locked[tag])
		}
		if empty := samples == 0 && unacked == 0; r.pool.IsEmpty(tag) != empty {
			t.Fatalf("model %s is empty: %t, want %t", tag, !empty, empty)
		}
	}
}

// drain takes and acknowledges all, and checks that each trajectory that was stored was given once or dropped.
func (r *run) drain(t *rapid.T) {
	for !r.pool.IsEmpty("") {
		before := r.pool.Status("")
		r.take(t, trajectory.Query{Consumer: "p", Quiet: true, Finished: true})
		for len(r.want.order) > 0 && r.pool.Status("").Unacked > 0 {
			r.both(func(p *trajectory.Pool) { p.Release("q"); p.Release("p") })
			for _, id := range r.want.order {
				r.want.owner[id] = ""
			}
			r.ack(t)
		}
		if r.pool.Status("") == before {
			t.Fatalf("the pool does not become empty: %+v", before)
		}
	}
	for name, times := range r.want.given {
		if times != 1 {
			t.Fatalf("%s was given %d times", name, times)
		}
	}
	if len(r.want.given)+r.want.dropped != r.want.stored || r.pool.Bytes() != 0 {
		t.Fatalf("%d trajectories were stored, %d given, %d dropped; %d bytes are left", r.want.stored, len(r.want.given), r.want.dropped, r.pool.Bytes())
	}
	if got, want := text(t, r.shadow), text(t, r.pool); got != want {
		t.Fatalf("replayed, the pool is %s, want %s", got, want)
	}
}

// text is all that a pool keeps.
func text(t *rapid.T, p *trajectory.Pool) string {
	state, payloads := p.Snapshot()
	out, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %q", out, payloads)
}
