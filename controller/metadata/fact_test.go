package metadata

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Fact 22: endpoints are visible while the task lives, and are gone on end, retry
// and host death; registering for an ended task fails.
func TestFact22EndpointsLiveAsLongAsTheirTask(t *testing.T) {
	changed := func(change func(*state.Job)) *state.Job {
		j := accesstest.RunningJob("rl", "train", 1)
		j.Attempts = slices.Clone(j.Attempts)
		change(j)
		return j
	}
	tests := []struct {
		name string
		jobs []*state.Job
		gone bool // of task 0, and of task 1
		both bool
	}{
		{"nothing of it changes", []*state.Job{changed(func(j *state.Job) { j.Ready = true })}, false, false},
		{"the attempt ends", []*state.Job{accesstest.EndedJob("rl", "train", 1)}, true, true},
		{"the task succeeds before others", []*state.Job{changed(func(j *state.Job) { j.Attempts[0].Tasks[0].State = schema.TaskSucceeded })}, true, false},
		{"the task's host dies", []*state.Job{changed(func(j *state.Job) { j.Attempts[0].Tasks[0].State = schema.TaskWorkerFailed })}, true, false},
		{"the gang is stopped for a dead host", []*state.Job{changed(func(j *state.Job) { j.Attempts[0].StopGeneration = 5 })}, true, true},
		{"a retry", []*state.Job{changed(func(j *state.Job) {
			ended := j.Attempts[0]
			ended.Outcome = schema.TaskPreempted
			j.Attempts = []state.Attempt{ended, {Number: 2, Tasks: ended.Tasks}}
		})}, true, true},
		{"the job is forgotten", nil, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegistrar(t, storetest.NewMemory(), 1, accesstest.RunningJob("rl", "train", 1))
				defer r.lose()
				job := asJob(t, "rl", "train", 1)
				id := r.mustRegister(job, t, &clusterapi.RegisterRequest{Name: "zero"})
				other := r.mustRegister(job, t, &clusterapi.RegisterRequest{Name: "one", Task: 1})
				w := r.watching(job, t, &clusterapi.WatchRequest{})
				if got := w.got(t); !slices.Equal(got, []string{"reset", "+one", "+zero"}) {
					t.Fatalf("the snapshot is %q", got)
				}
				if r.found(job, t, "zero") != id || r.found(job, t, "one") != other {
					t.Fatal("they are not visible while their tasks live")
				}
				r.board.Show(1, test.jobs...)
				synctest.Wait()
				if got := r.found(job, t, "zero") == ""; got != test.gone {
					t.Errorf("task 0's is gone: %v, want %v", got, test.gone)
				}
				if got := r.found(job, t, "one") == ""; got != test.both {
					t.Errorf("task 1's is gone: %v, want %v", got, test.both)
				}
				want := []string{}
				if test.gone {
					want = append(want, "-"+id)
				}
				if test.both {
					want = append(want, "-"+other)
				}
				if got := w.got(t); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
					t.Errorf("watchers are told %q, want %q", got, want)
				}
				_, err := r.Register(job, &clusterapi.RegisterRequest{Name: "late", Address: "10.0.0.1:1"})
				if refused := status.Code(err) == codes.FailedPrecondition; refused != test.gone && len(test.jobs) > 0 {
					t.Errorf("registering for it then: %v", err)
				}
				if len(test.jobs) == 0 && err == nil {
					t.Error("registering for a job that is not there succeeded")
				}
			})
		})
	}
}

// Fact 23: namespaces are isolated; names are unique where that is asked, and
// pools share a name.
func TestFact23NamespacesAndUniqueNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistrar(t, storetest.NewMemory(), 1, accesstest.RunningJob("rl", "train", 1), accesstest.RunningJob("rl", "eval", 1), accesstest.RunningJob("ops", "web", 1))
		defer r.lose()
		rl, eval, ops := asJob(t, "rl", "train", 1), asJob(t, "rl", "eval", 1), asJob(t, "ops", "web", 1)
		watched := r.watching(ops, t, &clusterapi.WatchRequest{})
		watched.got(t)
		mine := r.mustRegister(rl, t, &clusterapi.RegisterRequest{Name: "server", Unique: true})
		if got := r.found(ops, t, "server"); got != "" {
			t.Errorf("another namespace finds %s", got)
		}
		_, err := r.Lookup(ops, &clusterapi.LookupRequest{Name: "serve"})
		if err == nil || strings.Contains(err.Error(), "server") {
			t.Errorf("another namespace's names are shown: %v", err)
		}
		all, err := r.ListActors(ops, &clusterapi.ListActorsRequest{})
		if err != nil || len(all.GetActors()) != 0 {
			t.Errorf("another namespace lists %v, %v", all.GetActors(), err)
		}
		if got := watched.got(t); got != nil {
			t.Errorf("a watcher of another namespace is told %q", got)
		}

		for _, unique := range []bool{false, true} {
			_, err := r.Register(eval, &clusterapi.RegisterRequest{Name: "server", Address: "h:1", Unique: unique})
			if status.Code(err) != codes.AlreadyExists {
				t.Errorf("another job takes a unique name (unique %v): %v, want ALREADY_EXISTS", unique, err)
			}
		}
		theirs := r.mustRegister(ops, t, &clusterapi.RegisterRequest{Name: "server", Unique: true})
		if a, b := r.found(rl, t, "server"), r.found(ops, t, "server"); a != mine || b != theirs {
			t.Errorf("each finds %s and %s, want %s and %s", a, b, mine, theirs)
		}

		first := r.mustRegister(rl, t, &clusterapi.RegisterRequest{Name: "pool"})
		time.Sleep(time.Second)
		second := r.mustRegister(rl, t, &clusterapi.RegisterRequest{Name: "pool", Task: 1})
		pool, err := r.LookupAll(rl, &clusterapi.LookupRequest{Name: "pool"})
		if err != nil || len(pool.GetActors()) != 2 || pool.GetActors()[0].GetActorId() != first || r.found(rl, t, "pool") != second {
			t.Errorf("the pool is %v, %v; want both, and the newest found", pool.GetActors(), err)
		}
	})
}

// Fact 33: a group is ready at N of M; waiting fails at once when its job has ended.
func TestFact33WaitingForAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistrar(t, storetest.NewMemory(), 1, accesstest.RunningJob("rl", "train", 1), accesstest.RunningJob("rl", "workers", 1))
		defer r.lose()
		workers := asJob(t, "rl", "workers", 1)
		w := r.watching(asJob(t, "rl", "train", 1), t, &clusterapi.WatchRequest{Name: "worker", JobId: "workers-id"})
		if got := w.got(t); !slices.Equal(got, []string{"reset"}) {
			t.Fatalf("no actor is registered, and the watcher gets %q", got)
		}
		for i := range 2 { // N of M
			r.mustRegister(workers, t, &clusterapi.RegisterRequest{Name: "worker", Task: int32(i)})
			if got := w.got(t); !slices.Equal(got, []string{"+worker"}) {
				t.Errorf("the watcher is told %q of worker %d, want it at once", got, i)
			}
		}
		stopping := accesstest.RunningJob("rl", "workers", 1)
		stopping.Attempts[0].StopGeneration = 2 // a retry may follow
		r.board.Show(1, accesstest.RunningJob("rl", "train", 1), stopping)
		if got := w.got(t); len(got) != 2 {
			t.Errorf("the watcher is told %q, want both removed", got)
		}
		select {
		case err := <-w.done:
			t.Fatalf("the wait ended with %v though the job may start again", err)
		default:
		}
		before := time.Now()
		r.board.Show(1, accesstest.RunningJob("rl", "train", 1), accesstest.EndedJob("rl", "workers", 1))
		if err := <-w.done; status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "job workers-id has ended: failed: exit 1") {
			t.Errorf("the wait ended with %v, want FAILED_PRECONDITION and why", err)
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("it took %s", waited)
		}
		again := r.watching(asJob(t, "rl", "train", 1), t, &clusterapi.WatchRequest{Name: "worker", JobId: "workers-id"})
		if err := <-again.done; status.Code(err) != codes.FailedPrecondition {
			t.Errorf("waiting for a job that has ended: %v", err)
		}
		foreign := r.watching(caller.With(t.Context(), caller.Caller{Kind: caller.Job, Namespace: "ops", JobID: "x", Attempt: 1}), t, &clusterapi.WatchRequest{JobId: "train-id"})
		if err := <-foreign.done; status.Code(err) != codes.NotFound {
			t.Errorf("waiting for another namespace's job: %v", err)
		}
	})
}
