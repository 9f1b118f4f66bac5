package snapshot

import (
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// JobAt is the record of a job in next, nil if there is none.
func (d *Draft) JobAt(addr schema.Address) *state.Job {
	if d.found.last == nil || d.found.addr != addr {
		d.found.find(d.Desired.Jobs, addr, d.Next.Jobs)
	}
	return d.found.last
}

// PutJob records a job in next, in place of an entry of the same address.
func PutJob(d *Draft, addr schema.Address, j *state.Job) {
	mutableJobs(d)[addr] = j
	d.EditedJobs = append(d.EditedJobs, addr)
	d.found.note(d.Desired.Jobs, addr, j)
}

// DropJob forgets a job.
func DropJob(d *Draft, addr schema.Address) {
	delete(mutableJobs(d), addr)
	d.EditedJobs = append(d.EditedJobs, addr)
	d.found.note(d.Desired.Jobs, addr, nil)
}

// ExpectAll prepares for stages that look for the records of all desired jobs.
func ExpectAll(d *Draft) {
	d.found.all, d.found.fresh = make([]*state.Job, len(d.Desired.Jobs)), len(d.Next.Jobs) == 0
}

// foundJobs are records that JobAt has found. A stage asks many times for one job, and then for
// the next one in the order of the desired jobs: each look into a map of a million addresses
// takes long.
type foundJobs struct {
	addr schema.Address
	last *state.Job   // of addr; nil: to be looked for
	all  []*state.Job // of the desired jobs, as far as they were found; empty: not kept
	at   int          // the last index in all
	// fresh: none was recorded when all was made, so that it has each that is recorded now.
	fresh bool
}

// find finds the record of a job among some, nil if there is none.
func (f *foundJobs) find(desired []schema.Job, addr schema.Address, recorded map[schema.Address]*state.Job) {
	i, near := f.near(desired, addr)
	if near && (f.fresh || f.all[i] != nil) {
		f.addr, f.last = addr, f.all[i]
		return
	}
	f.addr, f.last = addr, recorded[addr]
	if near {
		f.all[i] = f.last
	}
}

// note takes in that the record of a job is another one now, or none.
func (f *foundJobs) note(desired []schema.Job, addr schema.Address, j *state.Job) {
	f.addr, f.last = addr, j
	if i, near := f.near(desired, addr); near {
		f.all[i] = j
	} else {
		f.all = nil // where the job is among them is not known
	}
}

// near is the index of a job, if it is the last one, the next one or the first.
func (f *foundJobs) near(desired []schema.Job, addr schema.Address) (int, bool) {
	for _, i := range [...]int{f.at + 1, f.at, 0} {
		if i < len(f.all) && desired[i].Addr == addr {
			f.at = i
			return i, true
		}
	}
	return 0, false
}
