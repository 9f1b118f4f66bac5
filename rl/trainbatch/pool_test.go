package trainbatch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/trainbatch"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

func newPool(t rapid.TB, cfg trainbatch.Config) *trainbatch.Pool {
	t.Helper()
	p, err := trainbatch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// id is that of the batch that is given, "" if there is none.
func id(p *trainbatch.Pool, model, consumer string) string {
	b, _ := p.Get(model, consumer)
	if b == nil {
		return ""
	}
	return b.ID
}

func TestN51_N52_FirstInFirstOutForEachModel(t *testing.T) {
	p := newPool(t, trainbatch.Config{})
	if got := id(p, "", ""); got != "" || !p.IsEmpty() {
		t.Errorf("an empty pool gives %q", got)
	}
	p.Put(rl.TrainHeader{ID: "1"}, nil)
	p.Put(rl.TrainHeader{ID: "2", ModelTag: "actor"}, nil)
	p.Put(rl.TrainHeader{ID: "3", ModelTag: "default"}, nil)
	for _, test := range []struct{ model, want string }{{"actor", "2"}, {"actor", ""}, {"", "1"}, {"default", "3"}, {"", ""}} {
		if got := id(p, test.model, ""); got != test.want {
			t.Errorf("model %q: batch %q, want %q", test.model, got, test.want)
		}
	}
}

func TestBatchComesOnceAndStaysUntilItIsAcknowledged(t *testing.T) {
	p := newPool(t, trainbatch.Config{})
	h := rl.TrainHeader{ID: "1"}
	if !p.Put(h, []byte("a")) || p.Put(h, []byte("b")) {
		t.Error("want that a batch is stored once")
	}
	p.Put(rl.TrainHeader{ID: "2"}, nil)
	if a, b, c := id(p, "", "w"), id(p, "", "w"), id(p, "", "v"); a != "1" || b != "1" || c != "2" {
		t.Errorf("w got %q and %q, v got %q; want 1 again until it is acknowledged, and 2", a, b, c)
	}
	if p.Release("w") != 1 || id(p, "", "x") != "1" || !p.Ack("1") || p.Ack("1") || p.Put(h, nil) {
		t.Error("want that the batch of a dead consumer goes to another, once, and is known afterwards")
	}
}

func TestTrainMemoryIsBounded(t *testing.T) {
	p := newPool(t, trainbatch.Config{MaxBytes: 3})
	if !p.Fits(make([]byte, 9)) {
		t.Error("an empty pool has no room for a large batch")
	}
	p.Put(rl.TrainHeader{ID: "1"}, make([]byte, 2))
	if p.Fits(make([]byte, 2)) || !p.Fits(make([]byte, 1)) {
		t.Error("a pool with 2 of 3 bytes has room for 2 more, or not for 1")
	}
	if id(p, "", "w/1"); !p.Fits(make([]byte, 3)) || p.Overhang() != 0 {
		t.Error("a batch that a consumer has, until its checkpoint, leaves no room for the next ones")
	}
	p.Put(rl.TrainHeader{ID: "2"}, make([]byte, 3))
	if id(p, "", "w/2"); p.Overhang() != 2 || p.Fits(nil) != true {
		t.Errorf("consumers have %d bytes more than may wait, want 2", p.Overhang())
	}
	if p.Release("w/2"); p.Overhang() != 0 || p.Fits(make([]byte, 1)) {
		t.Error("a batch that was released does not wait")
	}
	if p.Ack("1"); p.Bytes() != 3 {
		t.Errorf("%d bytes, want those of the second batch", p.Bytes())
	}
	if _, err := trainbatch.New(trainbatch.Config{MaxBytes: -1}); err == nil {
		t.Error("max_bytes -1 is accepted")
	}
}

// entry is a batch as the oracle has it.
type entry struct{ id, model, owner string }

// Any puts, deaths and restarts leave the pool with what a list has.
func TestPoolFollowsItsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPool(t, trainbatch.Config{})
		var list []entry
		seen := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			model := rapid.SampledFrom([]string{"a", "default"}).Draw(t, "model")
			consumer := rapid.SampledFrom([]string{"", "v", "w"}).Draw(t, "consumer")
			batch := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "batch"))
			switch rapid.SampledFrom([]string{"put", "put", "get", "ack", "release", "restart"}).Draw(t, "step") {
			case "put":
				if got := p.Put(rl.TrainHeader{ID: batch, ModelTag: model}, []byte(batch)); got == seen[batch] {
					t.Fatalf("put of %s is new: %t", batch, got)
				} else if got {
					seen[batch] = true
					list = append(list, entry{id: batch, model: model})
				}
			case "get":
				list = get(t, p, list, model, consumer)
			case "ack":
				i := slices.IndexFunc(list, func(e entry) bool { return e.id == batch && e.owner != "" })
				if got := p.Ack(batch); got != (i >= 0) {
					t.Fatalf("ack of %s: %t", batch, got)
				} else if got {
					list = slices.Delete(list, i, i+1)
				}
			case "release":
				p.Release(consumer)
				for i := range list {
					if consumer != "" && list[i].owner == consumer {
						list[i].owner = ""
					}
				}
			case "restart":
				p = restart(t, p)
			}
			if sizes := p.Sizes(); sizes["a"]+sizes["default"] != len(list) || p.IsEmpty() != (len(list) == 0) {
				t.Fatalf("%v, want %d batches", sizes, len(list))
			}
		}
	})
}

func get(t *rapid.T, p *trainbatch.Pool, list []entry, model, consumer string) []entry {
	i := slices.IndexFunc(list, func(e entry) bool { return e.model == model && e.owner == consumer && consumer != "" })
	if i < 0 {
		i = slices.IndexFunc(list, func(e entry) bool { return e.model == model && e.owner == "" })
	}
	got, _ := p.Get(model, consumer)
	switch {
	case i < 0 && got == nil:
		return list
	case i < 0 || got == nil || got.ID != list[i].id || string(got.Payload) != got.ID:
		t.Fatalf("%s gets %v of %s, want place %d of %v", consumer, got, model, i, list)
	}
	if consumer == "" {
		return slices.Delete(list, i, i+1)
	}
	list[i].owner = consumer
	return list
}

func restart(t *rapid.T, p *trainbatch.Pool) *trainbatch.Pool {
	state, payloads := p.Snapshot()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var read trainbatch.State
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	out := newPool(t, trainbatch.Config{})
	if err := out.Restore(read, payloads); err != nil {
		t.Fatal(err)
	}
	if out.Bytes() != p.Bytes() {
		t.Fatalf("%d bytes after a restart, want %d", out.Bytes(), p.Bytes())
	}
	return out
}
