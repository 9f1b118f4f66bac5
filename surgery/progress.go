package surgery

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
)

// keepProgress takes over from the present state what has happened since an older one
// was written, and returns notes of it. An older state is of use for what it declares;
// its attempts have ended, its requests were carried out, and its slices may have been
// deleted and created again under the same names. To order that once more would stop
// what runs now.
//
// What was asked for by hand and what was learnt of the world is no declaration either:
// a pause, launched jobs, the health of zones stay as they are now.
func keepProgress(older, present *state.Document) []string {
	present, notes := movedBack(older, present)
	older.Paused, older.Past = present.Paused, maps.Clone(present.Past)
	older.RemovedActors, older.Overrides = maps.Clone(present.RemovedActors), present.Overrides
	older.ZoneHealth, older.Conditions = maps.Clone(present.ZoneHealth), maps.Clone(present.Conditions)
	older.LocalPlace, older.MovedTo = present.LocalPlace, present.MovedTo
	keepLaunched(older, present)
	for _, addr := range stack.SortedJobs(present) {
		now, before := present.Jobs[addr], older.Jobs[addr]
		if before == nil && !now.Status.Ended() && now.Launch == nil || before != nil && before.ID == now.ID && before.Attempt > now.Attempt {
			continue
		}
		older.Jobs[addr] = now
		if note := progress(addr, before, now); note != "" {
			notes = append(notes, note)
		}
		for _, names := range [][]string{now.Slices, now.Staged} {
			for _, name := range names {
				if slice := present.Slices[name]; slice != nil {
					older.Slices[name] = slice
				}
			}
		}
	}
	held := map[string]bool{}
	for _, job := range older.Jobs {
		for _, name := range slices.Concat(job.Slices, job.Staged) {
			held[name] = true
		}
	}
	for name, slice := range older.Slices {
		switch now := present.Slices[name]; {
		case now == nil && !held[name]:
			delete(older.Slices, name) // it was deleted since
		case now != nil && !slice.Terminating.IsZero():
			older.Slices[name] = now
		}
	}
	return notes
}

// movedBack returns the present state with the jobs that were renamed since under the
// addresses that they had before, unless other jobs have these, and notes of it.
func movedBack(older, present *state.Document) (*state.Document, []string) {
	var notes []string
	was := map[string]schema.Address{}
	for addr, job := range older.Jobs {
		was[job.ID] = addr
	}
	for _, addr := range stack.SortedJobs(present) {
		before, known := was[present.Jobs[addr].ID]
		if !known || before == addr || present.Jobs[before] != nil {
			continue
		}
		if next, err := amend.Move(present, addr, before); err == nil {
			present, notes = next, append(notes, fmt.Sprintf("%s goes on as %s", addr, before))
		}
	}
	return present, notes
}

// keepLaunched leaves of what was launched only what still exists, and adds what was
// launched since: no file declares it, so that a rollback of declarations does not
// concern it.
func keepLaunched(older, present *state.Document) {
	for addr, job := range older.Jobs {
		if job.Launch != nil && present.Jobs[addr] == nil {
			delete(older.Jobs, addr)
		}
	}
	for addr, resource := range older.Resources {
		if resource.Launch != nil {
			delete(older.Resources, addr)
		}
	}
	for addr, resource := range present.Resources {
		if _, declared := older.Resources[addr]; resource.Launch != nil && !declared {
			older.Resources[addr] = resource
		}
	}
	for name, slice := range present.Slices {
		if owner := present.Resources[slice.Spec.Owner]; owner.Launch != nil {
			older.Slices[name] = slice
		}
	}
}

// progress names what a job has been through, "" if nothing that its attempts show.
func progress(addr schema.Address, before, now *state.Job) string {
	same := before != nil && before.ID == now.ID
	switch {
	case now.Status.Ended() && (!same || !before.Status.Ended() || before.Attempt < now.Attempt):
		return fmt.Sprintf("%s has ended since", addr)
	case same && before.Attempt < now.Attempt:
		return fmt.Sprintf("%s goes on with attempt %d", addr, now.Attempt)
	case before != nil && !same:
		return fmt.Sprintf("%s goes on as it was created since", addr)
	}
	return ""
}
