package surgery

import (
	"fmt"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
)

// keepProgress takes over from the present state what has happened since an older one
// was written, and returns notes of it. An older state is of use for what it declares;
// its attempts have ended, its requests were carried out, and its slices may have been
// deleted and created again under the same names. To order that once more would stop
// what runs now.
func keepProgress(older, present *state.Document) []string {
	var notes []string
	for _, addr := range stack.SortedJobs(present) {
		now, before := present.Jobs[addr], older.Jobs[addr]
		if before == nil && !now.Status.Ended() || before != nil && before.ID == now.ID && before.Attempt > now.Attempt {
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
	for name, slice := range older.Slices {
		if now := present.Slices[name]; now != nil && !slice.Terminating.IsZero() {
			older.Slices[name] = now
		}
	}
	return notes
}

// progress says what a job has been through, "" if nothing that its attempts show.
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
