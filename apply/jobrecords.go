package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// jobRecords keeps, beside the state, which jobs have run and how they ended, by
// their ids: a state that is lost is made again without running them again. It
// is written before the state is, and so before anything is deleted that tells
// of an end. One object holds what changed between two saves; the leader
// first joins those of its predecessors, and leaves out jobs that the state has
// no more.
type jobRecords struct {
	store store.Store
	epoch uint64
	valid func() error

	loaded  bool // and joined
	written int
	listed  []store.Attrs                 // of predecessors
	known   map[string]state.JobRecord    // as it is in the store, by id; nil: not read yet
	checked map[schema.Address]*state.Job // as of the last save, after which each is known
}

// load reads what predecessors have written.
func (j *jobRecords) load(ctx context.Context) (err error) {
	if j.known == nil {
		j.listed, j.known, err = readJobRecords(ctx, j.store)
	}
	return err
}

// save writes what became of jobs since the last call. since are the jobs that changed since
// a state, if that is known: where that is the state of the last call, no others are looked at.
func (j *jobRecords) save(ctx context.Context, doc *state.Document, since *state.JobChanges) error {
	var old []store.Attrs
	if !j.loaded {
		if err := j.load(ctx); err != nil {
			return err
		}
		old = j.listed
	}
	var changed []state.JobRecord
	if since != nil && j.loaded && reflect.ValueOf(since.Was).UnsafePointer() == reflect.ValueOf(j.checked).UnsafePointer() {
		changed = j.changesSince(since)
	} else {
		changed = j.changes(doc)
	}
	if len(old) > 1 {
		changed = slices.Collect(maps.Values(j.joined(changed)))
	}
	if len(changed) > 0 || !j.loaded && len(old) == 0 {
		if err := j.write(ctx, changed); err != nil {
			return err
		}
	}
	for _, r := range changed {
		if j.known[r.ID] = r; r.Status == "" {
			delete(j.known, r.ID)
		}
	}
	j.loaded, j.checked = true, doc.Jobs
	if len(old) > 1 {
		return j.remove(ctx, old)
	}
	return nil
}

// keepEnds is doc with those jobs ended that are recorded to have ended, which a state
// knows nothing of that is older than the records: a backup that was put in its place, or
// one whose last write was lost. It is doc itself where there are none.
func keepEnds(doc *state.Document, known map[string]state.JobRecord) *state.Document {
	next := doc
	for addr, was := range doc.Jobs {
		r := known[was.ID]
		if !r.Status.Ended() || was.Status.Ended() || r.Attempt < was.Attempt {
			continue
		}
		if next == doc {
			next = doc.Clone()
		}
		j := *was // a clone of a document shares its jobs
		j.Attempts = slices.Clone(was.Attempts)
		next.Jobs[addr] = &j
		j.Status, j.Reason, j.EndedAt, j.Ready, j.RetryAt = r.Status, r.Reason, r.EndedAt, false, time.Time{}
		j.Attempt, j.Failures, j.Preemptions = r.Attempt, r.Failures, r.Preemptions
		if last := j.Last(); last == nil || last.Number < r.Attempt { // the state was saved before that attempt
			j.Attempts = append(j.Attempts, recordedAttempt(r))
		} else if last.Outcome == "" {
			last.EndedAt, last.Outcome = r.EndedAt, r.Status.Outcome()
			last.Tasks = slices.Clone(last.Tasks)
			for i := range last.Tasks {
				if task := &last.Tasks[i]; !task.State.Ended() {
					task.State, task.EndedAt = last.Outcome, r.EndedAt
				}
			}
		}
	}
	return next
}

// recordedAttempt is the last attempt of a job, as far as its record tells.
func recordedAttempt(r state.JobRecord) state.Attempt {
	a := state.Attempt{
		Number: r.Attempt, Outcome: r.Status.Outcome(), Reason: r.Reason, StartedAt: r.EndedAt, EndedAt: r.EndedAt,
		Tasks: make([]state.Task, r.Tasks),
	}
	for i := range a.Tasks {
		a.Tasks[i].State, a.Tasks[i].EndedAt = a.Outcome, r.EndedAt
	}
	return a
}

// changes are the records that differ from those that are known. One without a
// status says that a job is no more.
func (j *jobRecords) changes(doc *state.Document) []state.JobRecord {
	var changed []state.JobRecord
	there := 0 // of those that are known
	for addr, job := range doc.Jobs {
		if !isKept(job) {
			continue
		}
		if j.checked[addr] == job {
			there++
			continue
		}
		r := recordOf(addr, job)
		known, ok := j.known[job.ID]
		if ok {
			there++
		}
		if !ok || !r.Equal(known) {
			changed = append(changed, r)
		}
	}
	if there == len(j.known) {
		return changed
	}
	return append(changed, j.gone(doc)...)
}

// changesSince are changes where only these jobs have changed.
func (j *jobRecords) changesSince(since *state.JobChanges) []state.JobRecord {
	var changed []state.JobRecord
	there := map[string]bool{}
	for addr, job := range since.Set {
		if !isKept(job) {
			continue
		}
		there[job.ID] = true
		r := recordOf(addr, job)
		if known, ok := j.known[job.ID]; !ok || !r.Equal(known) {
			changed = append(changed, r)
		}
	}
	gone := func(addr schema.Address) {
		was := since.Was[addr]
		if was == nil || there[was.ID] {
			return
		}
		if r, ok := j.known[was.ID]; ok {
			there[was.ID] = true
			changed = append(changed, state.JobRecord{ID: was.ID, Addr: r.Addr})
		}
	}
	for addr := range since.Set {
		gone(addr)
	}
	for _, addr := range since.Gone {
		gone(addr)
	}
	return changed
}

// isKept reports whether there is a record of a job.
func isKept(job *state.Job) bool { return job.Attempt > 0 || job.Status.Ended() }

// gone are records, without a status, of those known jobs that a state has no more.
func (j *jobRecords) gone(doc *state.Document) []state.JobRecord {
	there := make(map[string]bool, len(doc.Jobs))
	for _, job := range doc.Jobs {
		if isKept(job) {
			there[job.ID] = true
		}
	}
	var gone []state.JobRecord
	for id, r := range j.known {
		if !there[id] {
			gone = append(gone, state.JobRecord{ID: id, Addr: r.Addr})
		}
	}
	return gone
}

// joined are all records that are to be kept, by id.
func (j *jobRecords) joined(changed []state.JobRecord) map[string]state.JobRecord {
	all := maps.Clone(j.known)
	for _, r := range changed {
		if all[r.ID] = r; r.Status == "" {
			delete(all, r.ID)
		}
	}
	return all
}

// recordOf is what is kept of a job. Of one that has not ended that is only
// that it has run.
func recordOf(addr schema.Address, job *state.Job) state.JobRecord {
	r := state.JobRecord{ID: job.ID, Addr: addr, Status: schema.JobRunning}
	if job.Status.Ended() {
		r.Status, r.Reason, r.EndedAt = job.Status, job.Reason, job.EndedAt
		r.Attempt, r.Failures, r.Preemptions = job.Attempt, job.Failures, job.Preemptions
		if last := job.Last(); last != nil && last.Number == job.Attempt {
			r.Tasks = len(last.Tasks)
		}
	}
	return r
}

func (j *jobRecords) write(ctx context.Context, records []state.JobRecord) error {
	slices.SortFunc(records, func(a, b state.JobRecord) int { return a.Addr.Compare(b.Addr) })
	data, err := store.Encode(state.JobRecords{Records: records})
	if err != nil {
		return fmt.Errorf("encode the records of jobs: %w", err)
	}
	if err := j.valid(); err != nil {
		return err
	}
	_, err = j.store.Put(ctx, store.JobsKey(j.epoch, j.written), data, store.Absent)
	if errors.Is(err, store.ErrConflict) { // an earlier write of this epoch whose reply was lost
		_, err = j.store.Put(ctx, store.JobsKey(j.epoch, j.written), data, store.Any)
	}
	if err != nil {
		return fmt.Errorf("record how jobs ended: %w", err)
	}
	j.written++
	return nil
}

// remove removes what was joined.
func (j *jobRecords) remove(ctx context.Context, old []store.Attrs) error {
	for _, a := range old {
		if err := j.valid(); err != nil {
			return err
		}
		if err := j.store.Delete(ctx, a.Key); err != nil {
			return fmt.Errorf("remove old records of jobs: %w", err)
		}
	}
	return nil
}

// ReadJobRecords returns the records of the jobs that have run, by id. It reports
// false where none were ever kept: nothing follows then from there being none.
func ReadJobRecords(ctx context.Context, s store.Store) (map[string]state.JobRecord, bool, error) {
	listed, records, err := readJobRecords(ctx, s)
	return records, len(listed) > 0, err
}

func readJobRecords(ctx context.Context, s store.Store) ([]store.Attrs, map[string]state.JobRecord, error) {
	listed, err := s.List(ctx, store.JobsPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("look for the records of jobs: %w", err)
	}
	keys := make([]string, len(listed))
	for i := range listed {
		keys[i] = listed[i].Key
	}
	objects, err := store.GetAll(ctx, s, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("read the records of jobs: %w", err)
	}
	found := map[string]state.JobRecord{}
	for i := range objects { // in the order in which they were written
		if objects[i].Key == "" {
			continue
		}
		var records state.JobRecords
		if err := store.Decode(objects[i].Data, &records); err != nil {
			return nil, nil, fmt.Errorf("read %s in %s: %w; without it, jobs that it tells of may run again when the state is rebuilt; remove it to go on", keys[i], s.Location(), err)
		}
		for _, r := range records.Records {
			if found[r.ID] = r; r.Status == "" {
				delete(found, r.ID)
			}
		}
	}
	return listed, found, nil
}
