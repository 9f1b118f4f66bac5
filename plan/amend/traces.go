package amend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// bindWaiting records declared jobs that have slices and have never run on them.
func (r *rebuilder) bindWaiting() error {
	if r.Desired == nil {
		return nil
	}
	for i := range r.Desired.Jobs {
		want := &r.Desired.Jobs[i]
		if r.next.Jobs[want.Addr] != nil || want.Resources.Reservation != "" || r.ranBefore(want.Addr) {
			continue
		}
		specs, there := r.madeFor(want)
		if len(there) == 0 {
			continue
		}
		names := make([]string, 0, len(specs))
		for _, spec := range specs {
			names = append(names, spec.Name)
			r.next.Slices[spec.Name] = &state.Slice{Spec: spec}
		}
		for _, st := range there {
			r.bindSlice(st, want.Addr, st.Spec.Index)
		}
		if err := r.recordJob(want, state.Job{Status: schema.JobPending, Slices: names}); err != nil {
			return err
		}
		r.report.Recovered = append(r.report.Recovered, Finding{Addr: want.Addr, Text: fmt.Sprintf("it has not run yet; %d of its %d slices are there", len(there), len(names))})
	}
	return nil
}

// madeFor are the slices of a job, of the first of its alternatives of which some are there,
// and those that are.
func (r *rebuilder) madeFor(want *schema.Job) (specs []schema.SliceSpec, there []*schema.SliceStatus) {
	for _, a := range want.Resources.Alternatives() {
		specs = make([]schema.SliceSpec, 0, want.Resources.Slices)
		for n := range want.Resources.Slices {
			spec := plan.OwnSlice(r.Stack, want.As(a), n)
			if st := r.made(spec); st != nil {
				spec = st.Spec
				there = append(there, st)
			}
			specs = append(specs, spec)
		}
		if len(there) > 0 {
			break
		}
	}
	return specs, there
}

// made finds the slice that was made by a spec, in whatever zone.
func (r *rebuilder) made(spec schema.SliceSpec) *schema.SliceStatus {
	for _, name := range slices.Sorted(maps.Keys(r.listed)) {
		st := r.listed[name]
		if st.Spec.Owner == spec.Owner && st.Spec.Index == spec.Index && sameShape(st.Spec, spec) && st.Phase != schema.SliceDeleting {
			return st
		}
	}
	return nil
}

// recordJob records a declared job of which nothing runs.
func (r *rebuilder) recordJob(want *schema.Job, j state.Job) error {
	digest, err := schema.DigestOf(want)
	if err != nil {
		return fmt.Errorf("record %s: %w", want.Addr, err)
	}
	j.ID, j.Spec, j.Digest = plan.JobID(r.next.Lineage, want.Addr, r.next.Revision), want, digest
	r.next.Jobs[want.Addr] = &j
	r.desire(want)
	return r.standIn(want)
}

// stopOthers records declared jobs that have run, and of which there is no record how
// that ended, as stopped.
func (r *rebuilder) stopOthers() error {
	if r.Desired == nil {
		return nil
	}
	for i := range r.Desired.Jobs {
		want := &r.Desired.Jobs[i]
		if r.next.Jobs[want.Addr] != nil {
			continue
		}
		if past, ok := r.past[want.Addr]; ok && past.Status.Ended() {
			if err := r.recordEnded(want, past); err != nil {
				return err
			}
			continue
		}
		if r.Kept && !r.ranBefore(want.Addr) {
			r.report.New = append(r.report.New, Finding{Addr: want.Addr, Text: "it has never run; the next apply creates it"})
			continue
		}
		why := fmt.Sprintf("it had run before the state was lost, and it is not known how that ended; fray apply --replace='%s' starts it again", want.Addr)
		if !r.ranBefore(want.Addr) {
			why = fmt.Sprintf("nothing is left that says whether it has run before the state was lost; fray apply --replace='%s' starts it", want.Addr)
		}
		if err := r.recordJob(want, state.Job{Status: schema.JobStopped, Reason: why}); err != nil {
			return err
		}
		r.report.Unknown = append(r.report.Unknown, Finding{Addr: want.Addr, Text: why})
	}
	return nil
}

// findTraces finds what has run: by its logs, or by a host that ran it. What is
// recovered does not count: that is at another address now.
func (r *rebuilder) findTraces() error {
	r.past = r.newestRecords()
	held, recovered := map[string]bool{}, map[string]bool{}
	for _, a := range r.live {
		recovered[a.Run.JobID] = true
		for _, p := range a.Run.Peers {
			held[p.Slice] = true
		}
	}
	r.stems, r.reported = map[string]bool{}, map[schema.Address]bool{}
	for _, id := range r.Logs {
		if !recovered[id] {
			r.stems[plan.StemOf(id)] = true
		}
	}
	delete(r.stems, "")
	for name, hosts := range r.Observed.Hosts {
		for i := range hosts {
			if t := hosts[i].Task; t != nil && !held[name] {
				r.reported[t.Job] = true
			}
		}
	}
	return nil
}

// recordEnded records a job as it had ended, by the id that it had.
func (r *rebuilder) recordEnded(want *schema.Job, past state.JobRecord) error {
	j := state.Job{
		Status: past.Status, Reason: past.Reason, EndedAt: past.EndedAt,
		Attempt: past.Attempt, Failures: past.Failures, Preemptions: past.Preemptions,
	}
	if err := r.recordJob(want, j); err != nil {
		return err
	}
	r.next.Jobs[want.Addr].ID = past.ID
	r.report.Ended = append(r.report.Ended, Finding{Addr: want.Addr, Job: past.ID, Text: "it has " + string(past.Status)})
	return nil
}

// newestRecords are the records by the address that a job has now.
func (r *rebuilder) newestRecords() map[schema.Address]state.JobRecord {
	newest := map[schema.Address]state.JobRecord{}
	for _, id := range slices.Sorted(maps.Keys(r.Jobs)) {
		record := r.Jobs[id]
		addr := record.Addr
		if given, ok := r.Addrs[id]; ok {
			addr = given
		}
		if other, ok := newest[addr]; !ok || record.EndedAt.After(other.EndedAt) {
			newest[addr] = record
		}
	}
	return newest
}

func (r *rebuilder) ranBefore(addr schema.Address) bool {
	if _, recorded := r.past[addr]; recorded {
		return true
	}
	return r.stems[plan.JobStem(addr)] || r.reported[addr]
}
