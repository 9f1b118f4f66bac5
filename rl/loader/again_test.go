package loader_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
)

// again are tasks of a pool, numbered from a number on.
func again(from int64, tasks ...string) []rl.TaskAgain {
	var out []rl.TaskAgain
	for i, task := range tasks {
		out = append(out, rl.TaskAgain{Number: from + int64(i), TaskID: task})
	}
	return out
}

// leaseNext leases a task to a worker, "" if there is none.
func leaseNext(l *loader.Loader, worker string) (task, lease string) {
	grant, ok := l.Next(worker, "1", begin())
	if !ok {
		return "", ""
	}
	return grant.Lease.TaskID, grant.Lease.ID
}

// restored is the loader that the next process has.
func restored(t *testing.T, cfg loader.Config, l *loader.Loader) *loader.Loader {
	t.Helper()
	text, err := json.Marshal(l.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var state loader.State
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	out, err := loader.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Restore(state); err != nil {
		t.Fatal(err)
	}
	return out
}

// N61: a task whose trajectory is not used is given again once, however often that is asked for, also by the next process.
func TestN61_TaskIsGivenAgainOnce(t *testing.T) {
	cfg := loader.Config{Length: 3, Repeat: 2, KeepBatchOrder: true}
	l, err := loader.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.Add([]byte("added"), false)
	for {
		task, lease := leaseNext(l, "w")
		if task == "" {
			break
		}
		l.Complete(lease)
	}
	if !l.Status().Quiet() {
		t.Fatalf("%+v, want that all is done", l.Status())
	}
	tasks := again(1, "0/1/1", "added/0/0", "0/2/0")
	if lost := l.Again("pool", 0, tasks); lost != nil {
		t.Errorf("the loader does not know %q", lost)
	}
	l.Again("pool", 0, tasks)
	l = restored(t, cfg, l)
	l.Again("pool", 0, tasks)
	if l.Status().Quiet() || l.IsFinished() {
		t.Errorf("%+v with tasks that are to be given again", l.Status())
	}
	l.Again("other pool", 0, again(1, "0/0/0"))
	var got []string
	for range 5 {
		task, lease := leaseNext(l, "w")
		l.Complete(lease)
		got = append(got, task)
	}
	if l.Again("pool", 0, tasks); !l.Status().Quiet() {
		t.Errorf("%+v, want that what was given again and is done stays so", l.Status())
	}
	if want := []string{"0/0/0", "0/1/1", "added/0/0", "0/2/0", ""}; !slices.Equal(got, want) {
		t.Errorf("tasks %q, want %q", got, want)
	}
}

// A worker that dies, or does not get the answer to its put, has the task's lease still: the task is not given twice.
func TestN61_LeasedTaskIsGivenAgainOnce(t *testing.T) {
	cfg := loader.Config{Length: 2}
	for name, end := range map[string]func(*loader.Loader, string) bool{"complete": (*loader.Loader).Complete, "put back": (*loader.Loader).PutBack} {
		t.Run(name, func(t *testing.T) {
			l, err := loader.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			_, lease := leaseNext(l, "w")
			l.Again("pool", 0, again(1, "0/0/0"))
			l = restored(t, cfg, l)
			end(l, lease)
			l.Again("pool", 0, again(2, "0/0/0")) // it waits already
			first, lease := leaseNext(l, "w")
			l.Complete(lease)
			second, lease := leaseNext(l, "w")
			l.Complete(lease)
			if first != "0/0/0" || second != "0/1/0" || !l.Status().Quiet() {
				t.Errorf("tasks %s and %s, then %+v; want each once", first, second, l.Status())
			}
		})
	}
}

func TestN61_TasksOfAnotherEpochOrUnknown(t *testing.T) {
	l, err := loader.New(loader.Config{Length: 1})
	if err != nil {
		t.Fatal(err)
	}
	begins := l.Snapshot()
	_, lease := leaseNext(l, "w")
	l.Complete(lease)
	if lost := l.Again("pool", 0, again(1, "added/7/0", "0/5/0", "1/0/0", "nonsense")); len(lost) != 4 {
		t.Errorf("lost %q, want all four", lost)
	}
	if err := l.Rewind(begins, 1); err != nil {
		t.Fatal(err)
	}
	l.Again("pool", 0, again(9, "0/0/0")) // by a pool that has not gone back yet
	old := again(1, "0/0/0")
	l.Again("pool", 1, old)
	if n := l.Len(); n != 1 {
		t.Errorf("%d tasks, want the one of the data: the others are of before the rewind", n)
	}
	_, lease = leaseNext(l, "w")
	l.Complete(lease)
	now := again(2, "0/0/0")
	now[0].Epoch = 1
	l.Again("pool", 1, now)
	if task, _ := leaseNext(l, "w"); task != "0/0/0" {
		t.Errorf("task %q, want 0/0/0 again", task)
	}
}
