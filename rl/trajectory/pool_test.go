package trajectory_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/trajectory"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

// begin is when the tests' pools begin.
func begin() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newPool(t *testing.T, cfg trajectory.Config) *trajectory.Pool {
	t.Helper()
	cfg.Name = "pool"
	p, err := trajectory.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// put puts a trajectory whose payload is its name, and returns the outcome.
func put(t *testing.T, p *trajectory.Pool, h rl.Header, name string) rl.Outcome {
	t.Helper()
	verdict, err := p.Admit(h, []byte(name))
	if err != nil || verdict.Wait {
		t.Fatalf("put %s: %+v, %v; want that it is decided", name, verdict, err)
	}
	if verdict.Outcome != "" {
		return verdict.Outcome
	}
	p.Store(h, []byte(name), begin())
	return rl.Success
}

func grouped(group any) rl.Header { return rl.Header{Keys: map[string]any{"group_id": group}} }

// names are the payloads of a batch that is taken; nil if there is none.
func names(t *testing.T, p *trajectory.Pool, q trajectory.Query) []string {
	t.Helper()
	answer, err := p.Take(q)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Batch == nil {
		return nil
	}
	var out []string
	for _, payload := range answer.Batch.Payloads {
		out = append(out, string(payload))
	}
	return out
}

func wantNames(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the batch has %q, want %q", got, want)
	}
}

func TestN19_MissingModelTagIsDefault(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached})
	if tags := p.ModelTags(); len(tags) != 0 {
		t.Errorf("an unused pool has stores for %q, want none", tags)
	}
	put(t, p, rl.Header{}, "a")
	put(t, p, rl.Header{ModelTag: "actor"}, "b")
	if got := p.ModelTags(); !slices.Equal(got, []string{"default", "actor"}) {
		t.Errorf("stores of %q, want default and actor", got)
	}
}

func TestN20_N21_N22_LockedModelIsRolledOutAgain(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached})
	p.Lock("actor")
	if got := put(t, p, rl.Header{ModelTag: "actor"}, "a"); got != rl.ReRollout {
		t.Errorf("put of a locked model: %q, want re-rollout", got)
	}
	if !p.IsEmpty("") {
		t.Error("a trajectory that is to be rolled out again was stored")
	}
	if got := put(t, p, rl.Header{ModelTag: "critic"}, "b"); got != rl.Success {
		t.Errorf("put of another model: %q, want success", got)
	}
	p.Unlock("actor", 0, begin())
	if got := put(t, p, rl.Header{ModelTag: "actor"}, "a"); got != rl.Success {
		t.Errorf("put after the unlock: %q, want success", got)
	}
}

func TestN23_KeysChooseTheStore(t *testing.T) {
	simple := newPool(t, trajectory.Config{GroupSize: 8, BatchSize: 1, Ready: rl.BatchSizeReached})
	put(t, simple, rl.Header{}, "a")
	wantNames(t, names(t, simple, trajectory.Query{}), "a")
}

func TestN24_MissingGroupKeyFails(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"group_id", "session"}, GroupSize: 2, BatchSize: 2, Ready: rl.BatchSizeReached})
	for _, keys := range []map[string]any{nil, {"group_id": "g"}, {"group_id": "g", "session": 1.5}} {
		verdict, err := p.Admit(rl.Header{Keys: keys}, []byte("a"))
		if verdict.Outcome != rl.Fail || verdict.Reason == "" || err != nil {
			t.Errorf("keys %v: %+v, %v; want fail with a reason", keys, verdict, err)
		}
	}
}

func TestUnusableHeadersFail(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReached})
	hot := math.Inf(1)
	for _, h := range []rl.Header{{Scores: map[string]float64{"reward": math.NaN()}}, {Temperature: &hot}, {Keys: map[string]any{"group_id": []byte("g")}}} {
		verdict, err := p.Admit(h, nil)
		if verdict.Outcome != rl.Fail || verdict.Reason == "" || err != nil {
			t.Errorf("%+v: %+v, %v; want fail with a reason", h, verdict, err)
		}
	}
}

func TestN25_GroupReleasesExactlyAtGroupSize(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 3, BatchSize: 3, Ready: rl.BatchSizeReached})
	for i, group := range []any{"x", int64(1), "1", int64(1), "x", "x"} { // "1" and 1 are two groups
		wantNames(t, names(t, p, trajectory.Query{}))
		put(t, p, grouped(group), fmt.Sprint(i))
	}
	put(t, p, grouped("x"), "6")
	wantNames(t, names(t, p, trajectory.Query{}), "0", "4", "5")
	if got := p.Status(""); got.Samples != 4 || got.Incomplete != 3 {
		t.Errorf("%+v, want 4 samples in 3 incomplete groups", got)
	}
}

func TestN26_HierarchyReleasesAtLeaf(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"user", "session"}, GroupSize: 2, BatchSize: 2, Ready: rl.BatchSizeReached})
	leaf := func(user, session string) rl.Header {
		return rl.Header{Keys: map[string]any{"user": user, "session": session}}
	}
	put(t, p, leaf("u", "1"), "a")
	put(t, p, leaf("u", "2"), "b")
	put(t, p, leaf("v", "1"), "c")
	wantNames(t, names(t, p, trajectory.Query{}))
	put(t, p, leaf("u", "2"), "d")
	wantNames(t, names(t, p, trajectory.Query{}), "b", "d")
}

func TestN27_BatchSizeReachedPopsExactlyTheFirst(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReached})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		put(t, p, rl.Header{}, name)
	}
	wantNames(t, names(t, p, trajectory.Query{}), "a", "b")
	wantNames(t, names(t, p, trajectory.Query{BatchSize: 3}), "c", "d", "e")
	wantNames(t, names(t, p, trajectory.Query{}))
}

func TestN28_LoadedBatchFinishedTakesAll(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 2, BatchSize: 2})
	wantNames(t, names(t, p, trajectory.Query{Quiet: true})) // no samples
	for _, task := range []string{"0/3/1", "0/10/0", "0/2/1", "0/2/0", "0/3/0", "0/10/1"} {
		h := grouped(task[:len(task)-2])
		h.TaskID = task
		put(t, p, h, task)
	}
	wantNames(t, names(t, p, trajectory.Query{}))
	wantNames(t, names(t, p, trajectory.Query{Quiet: true}), "0/2/0", "0/2/1", "0/3/0", "0/3/1", "0/10/0", "0/10/1")
	wantNames(t, names(t, p, trajectory.Query{Quiet: true}))
}

func TestN29_BothConditions(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReachedAndLoadedBatchFinished})
	put(t, p, rl.Header{}, "a")
	wantNames(t, names(t, p, trajectory.Query{Quiet: true}))
	put(t, p, rl.Header{}, "b")
	put(t, p, rl.Header{}, "c")
	wantNames(t, names(t, p, trajectory.Query{}))
	wantNames(t, names(t, p, trajectory.Query{Quiet: true}), "a", "b")
	if _, err := trajectory.New(trajectory.Config{Ready: rl.BatchSizeReached}); err == nil {
		t.Error("batch_size_reached without a batch_size is accepted, want an error")
	}
}

func TestN30_N31_N93_Tags(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReached})
	put(t, p, rl.Header{ModelTag: "a"}, "a1")
	put(t, p, rl.Header{ModelTag: "b"}, "b1")
	put(t, p, rl.Header{ModelTag: "b"}, "b2")
	wantNames(t, names(t, p, trajectory.Query{Tag: "unknown"}))
	wantNames(t, names(t, p, trajectory.Query{Tag: "a"}))
	wantNames(t, names(t, p, trajectory.Query{}), "b1", "b2") // any that is ready
	if got := p.ModelTags(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("tags %q, want a and b", got)
	}
}

func TestN32_IsEmptyCountsIncompleteGroups(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 2, BatchSize: 2, Ready: rl.BatchSizeReached})
	if !p.IsEmpty("") || !p.IsEmpty("unknown") {
		t.Error("a pool without trajectories is not empty")
	}
	put(t, p, grouped("g"), "a")
	if p.IsEmpty("") || p.IsEmpty("default") || !p.IsEmpty("unknown") {
		t.Error("a pool with an incomplete group counts as empty, or an unknown model does not")
	}
	put(t, p, grouped("g"), "b")
	answer, err := p.Take(trajectory.Query{Consumer: "algorithm_processor_0"})
	if err != nil || answer.Batch == nil || p.IsEmpty("") {
		t.Errorf("batch %v, %v, empty %t; want a batch that counts until it is acknowledged", answer.Batch, err, p.IsEmpty(""))
	}
	if !p.Ack(answer.Batch.ID) || !p.IsEmpty("") || p.Bytes() != 0 {
		t.Errorf("after the acknowledgement: empty %t, %d bytes", p.IsEmpty(""), p.Bytes())
	}
}

func TestN33_IncompleteGroupsDoNotStay(t *testing.T) {
	for _, policy := range []rl.IncompletePolicy{rl.Flush, rl.Drop} {
		t.Run(string(policy), func(t *testing.T) {
			p := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 2, BatchSize: 2, Ready: rl.BatchSizeReached, Policy: policy})
			put(t, p, grouped("g"), "a")
			wantNames(t, names(t, p, trajectory.Query{}))
			answer, err := p.Take(trajectory.Query{Quiet: true, Finished: true})
			if err != nil || !answer.Changed || !p.IsEmpty("") || p.Bytes() != 0 {
				t.Fatalf("%+v, %v, empty %t, %d bytes; want an empty pool", answer, err, p.IsEmpty(""), p.Bytes())
			}
			if policy == rl.Drop {
				if answer.Batch != nil {
					t.Errorf("a dropped group was given: %v", answer.Batch)
				}
				return
			}
			if n := answer.Batch.Metadata["incomplete_groups"]; n != 1 || len(answer.Batch.Payloads) != 1 {
				t.Errorf("the last batch has %d trajectories of %v incomplete groups, want 1 of 1", len(answer.Batch.Payloads), n)
			}
		})
	}
}

func TestN35_RolloutTime(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached})
	p.Unlock("", 0, begin())
	put(t, p, rl.Header{}, "a")
	answer, err := p.Take(trajectory.Query{Now: begin().Add(1500 * time.Millisecond)})
	if err != nil || answer.Batch.Metadata["rollout_time"] != 1.5 {
		t.Errorf("metadata %v, %v; want 1.5 s from the unlock to the batch", answer.Batch.Metadata, err)
	}
}

func TestN7_DifferentFieldsPopNothing(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReached})
	put(t, p, rl.Header{TaskID: "0/0/0", Fields: []string{"prompt", "response"}}, "a")
	put(t, p, rl.Header{TaskID: "0/1/0", Fields: []string{"prompt", "score"}}, "b")
	_, err := p.Take(trajectory.Query{})
	fields, ok := errors.AsType[*trajectory.FieldsError](err)
	if !ok || fields.Task != "0/0/0" || fields.Other != "0/1/0" || !slices.Equal(fields.Missing, []string{"response"}) || !slices.Equal(fields.More, []string{"score"}) {
		t.Fatalf("got %v, want a FieldsError about response and score", err)
	}
	if p.Status("").Samples != 2 {
		t.Errorf("%d samples are left, want both", p.Status("").Samples)
	}
	wantNames(t, names(t, p, trajectory.Query{BatchSize: 1}), "a")
}

func TestN8_Metadata(t *testing.T) {
	cold, hot := 0.5, 1.0
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReached})
	for _, temperature := range []*float64{&cold, &cold, &cold, &hot} {
		put(t, p, rl.Header{ModelTag: "actor", Temperature: temperature}, "a")
	}
	same, _ := p.Take(trajectory.Query{})
	if m := same.Batch.Metadata; m["batch_size"] != 2 || m["model_tag"] != "actor" || m["temperature"] != cold {
		t.Errorf("metadata %v, want batch_size 2 of actor at 0.5", m)
	}
	mixed, _ := p.Take(trajectory.Query{})
	if got, ok := mixed.Batch.Metadata["temperature"]; ok {
		t.Errorf("a batch of two temperatures has %v, want none", got)
	}
}

func TestAcceptedTaskIsStoredOnce(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 9, Ready: rl.BatchSizeReached})
	first := rl.Header{TaskID: "0/1/0", Lease: "1"}
	other := rl.Header{TaskID: "0/1/0", Lease: "2"}
	put(t, p, first, "a")
	put(t, p, first, "a") // the answer was lost
	put(t, p, first, "b") // a second trajectory of the same rollout
	p.Lock("")
	if got := put(t, p, other, "c"); got != rl.Success { // from the worker that took the task over
		t.Errorf("a task that was accepted: %q, want success, even while its model is locked", got)
	}
	if n := p.Status("").Samples; n != 2 {
		t.Errorf("%d samples, want the two of the first lease", n)
	}
}

func TestEpochOfTheRun(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached})
	put(t, p, rl.Header{TaskID: "0/0/0"}, "a")
	p.Rewind(1)
	if got := put(t, p, rl.Header{TaskID: "0/1/0"}, "b"); got != rl.Fail || !p.IsEmpty("") {
		t.Errorf("a trajectory of before the rewind: %q, empty %t; want fail, nothing stored", got, p.IsEmpty(""))
	}
	if got := put(t, p, rl.Header{TaskID: "0/0/0", Epoch: 1}, "c"); got != rl.Success || p.IsEmpty("") {
		t.Errorf("the task again, after the rewind: %q, want success", got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	p := newPool(t, trajectory.Config{BatchSize: 2, Ready: rl.BatchSizeReached, MaxBytes: 2000})
	put(t, p, rl.Header{}, "a")
	put(t, p, rl.Header{}, "b")
	put(t, p, rl.Header{}, "c")
	if verdict, err := p.Admit(rl.Header{}, []byte("d")); !verdict.Wait || err != nil {
		t.Errorf("%+v, %v; want that it waits: a batch can be taken", verdict, err)
	}
	if _, err := p.Admit(rl.Header{}, make([]byte, 3000)); err == nil {
		t.Error("a trajectory above max_bytes waits, want an error")
	}
	small := newPool(t, trajectory.Config{BatchSize: 9, Ready: rl.BatchSizeReached, MaxBytes: 1000})
	put(t, small, rl.Header{}, "a")
	full := (*trajectory.FullError)(nil)
	if _, err := small.Admit(rl.Header{}, []byte("b")); !errors.As(err, &full) || full.Limit != 1000 {
		t.Errorf("got %v, want a FullError: no batch of 9 ever fits", err)
	}
}
