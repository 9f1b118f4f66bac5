package surgery

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestKeepProgress(t *testing.T) {
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	slice := func(cause state.Cause) *state.Slice {
		return &state.Slice{Terminating: state.Termination{Cause: cause}}
	}
	document := func(j *state.Job, all map[string]*state.Slice) *state.Document {
		d := &state.Document{Slices: all, Jobs: map[schema.Address]*state.Job{}}
		if j != nil {
			d.Jobs[addr] = j
		}
		return d
	}
	job := func(id string, attempt int, status schema.JobStatus, replace bool, slices ...string) *state.Job {
		return &state.Job{ID: id, Attempt: attempt, Status: status, Slices: slices, JobRequests: state.JobRequests{Replace: replace}}
	}
	running := func(attempt int, replace bool) *state.Job {
		return job("x", attempt, schema.JobRunning, replace, "a-0")
	}
	for name, c := range map[string]struct {
		older, present         *state.Job
		olderSlice, nowSlice   *state.Slice
		wantPresent, wantSlice bool // the present one is kept
		notes                  []string
	}{
		"a replacement was carried out": {
			running(1, true), running(2, false), slice(state.CauseReplaced), slice(""), true, true, []string{"job.a goes on with attempt 2"},
		},
		"a request is not made once more": {running(2, true), running(2, false), slice(""), slice(""), true, true, nil},
		"it ended":                        {running(1, false), job("x", 1, schema.JobSucceeded, false), slice(""), nil, true, true, []string{"job.a has ended since"}},
		"it was created again": {
			running(4, false), job("y", 1, schema.JobRunning, false, "a-0"), slice(state.CauseJobRemoved), slice(""), true, true,
			[]string{"job.a goes on as it was created since"},
		},
		"it was removed":                  {running(1, false), nil, slice(""), nil, false, false, nil},
		"it was added":                    {nil, running(1, false), nil, slice(""), false, false, nil},
		"an older state of it was pushed": {running(3, false), running(2, true), slice(""), slice(state.CauseReplaced), false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := func(s *state.Slice) map[string]*state.Slice {
				if s == nil {
					return map[string]*state.Slice{}
				}
				return map[string]*state.Slice{"a-0": s}
			}
			older := document(c.older, all(c.olderSlice))
			notes := keepProgress(older, document(c.present, all(c.nowSlice)))
			wantJob, wantSlice := c.older, c.olderSlice
			if c.wantPresent {
				wantJob = c.present
			}
			if c.wantSlice {
				wantSlice = c.nowSlice
			}
			if older.Jobs[addr] != wantJob {
				t.Errorf("the job is %+v, want %+v", older.Jobs[addr], wantJob)
			}
			if older.Slices["a-0"] != wantSlice {
				t.Errorf("the slice is %+v, want %+v", older.Slices["a-0"], wantSlice)
			}
			if !slices.Equal(notes, c.notes) {
				t.Errorf("notes %q, want %q", notes, c.notes)
			}
		})
	}
}

// TestKeepPresent: a rollback of declarations takes back no request, renaming or launch.
func TestKeepPresent(t *testing.T) {
	address := func(kind schema.Kind, name string) schema.Address { return schema.Address{Kind: kind, Name: name} }
	a, b, launched := address(schema.KindJob, "a"), address(schema.KindJob, "b"), schema.LaunchedAddress(schema.KindJob, "rl", "", "eval")
	flex := schema.LaunchedAddress(schema.KindReservation, "rl", "", "flex")
	job := func(id string, addr schema.Address, attempt int, launch *state.Launch) *state.Job {
		return &state.Job{ID: id, Spec: &schema.Job{Addr: addr}, Attempt: attempt, Status: schema.JobRunning, Launch: launch}
	}
	pool := func() state.Resource {
		return state.Resource{Launch: &state.Launch{}, Reservation: &schema.Reservation{Addr: flex}}
	}
	pause := &state.Pause{Reason: "maintenance"}
	for name, c := range map[string]struct {
		older, present *state.Document
		check          func(*state.Document) bool
		notes          []string
	}{
		"paused since": {
			&state.Document{}, &state.Document{Paused: pause},
			func(d *state.Document) bool { return d.Paused == pause }, nil,
		},
		"resumed since": {
			&state.Document{Paused: pause}, &state.Document{},
			func(d *state.Document) bool { return d.Paused == nil }, nil,
		},
		"renamed since": {
			&state.Document{Jobs: map[schema.Address]*state.Job{a: job("x", a, 1, nil)}},
			&state.Document{Jobs: map[schema.Address]*state.Job{b: job("x", b, 2, nil)}},
			func(d *state.Document) bool {
				return len(d.Jobs) == 1 && d.Jobs[a].Attempt == 2 && d.Jobs[a].Spec.Addr == a
			}, []string{"job.b goes on as job.a", "job.a goes on with attempt 2"},
		},
		"a launched job was forgotten": {
			&state.Document{Jobs: map[schema.Address]*state.Job{launched: job("x", launched, 1, &state.Launch{})}}, &state.Document{},
			func(d *state.Document) bool { return len(d.Jobs) == 0 }, nil,
		},
		"a job was launched": {
			&state.Document{}, &state.Document{Jobs: map[schema.Address]*state.Job{launched: job("x", launched, 1, &state.Launch{})}},
			func(d *state.Document) bool { return len(d.Jobs) == 1 }, nil,
		},
		"a launched reservation was released": {
			&state.Document{Resources: map[schema.Address]state.Resource{flex: pool()}}, &state.Document{},
			func(d *state.Document) bool { return len(d.Resources) == 0 }, nil,
		},
		"a reservation was launched": {
			&state.Document{}, &state.Document{
				Resources: map[schema.Address]state.Resource{flex: pool()},
				Slices:    map[string]*state.Slice{"flex-0": {Spec: schema.SliceSpec{Owner: flex}}},
			},
			func(d *state.Document) bool { return len(d.Resources) == 1 && len(d.Slices) == 1 }, nil,
		},
		"a slice was deleted": {
			&state.Document{Slices: map[string]*state.Slice{"a-0": {}}}, &state.Document{},
			func(d *state.Document) bool { return len(d.Slices) == 0 }, nil,
		},
		"an actor was removed": {
			&state.Document{}, &state.Document{Former: state.Former{RemovedActors: map[string]state.RemovedActors{"j": {Names: []string{"a"}}}}},
			func(d *state.Document) bool { return len(d.RemovedActors) == 1 }, nil,
		},
		"a zone was found to be full": {
			&state.Document{}, &state.Document{ZoneHealth: map[string]state.ZoneHealth{"z": {Failures: 1}}},
			func(d *state.Document) bool { return len(d.ZoneHealth) == 1 }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			older := c.older.Clone()
			notes := keepProgress(older, c.present.Clone())
			if !c.check(older) {
				t.Errorf("the state is %+v", older)
			}
			if !slices.Equal(notes, c.notes) {
				t.Errorf("notes %q, want %q", notes, c.notes)
			}
		})
	}
}
