package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What programs launch stands in the state only: its records carry a
// [state.Launch]. [Wanted] puts it beside what files declare, and from there on
// it is like that. It goes when it is terminated or released, when the attempt
// that launched it ends, or a day after it has ended by itself.

// Retention is how long what was launched is remembered after its end.
const Retention = 24 * time.Hour

// MaxRemembered is how many of the jobs that have ended are remembered for that
// long, and likewise of the past: the state is written whole.
const MaxRemembered = 10_000

// Launching is something to be launched: a job, a group or a reservation.
// Exactly one of the specs is set; its address is a launched one.
type Launching struct {
	Job         *schema.Job
	Group       *schema.JobGroup
	Reservation *schema.Reservation
	Launch      state.Launch
}

// NameTakenError says that something of that address lives. It is returned as
// a pointer. Leaving says that it has ended, and what it held is still going:
// wait for the next state and try again.
type NameTakenError struct {
	Addr    schema.Address
	Leaving bool
}

func (e *NameTakenError) Error() string {
	if e.Leaving {
		return fmt.Sprintf("%s has ended, but its slices are still being released", e.Addr)
	}
	return fmt.Sprintf("%s lives already", e.Addr)
}

// LaunchID is the globally unique id of a launched job: the same for one request.
func LaunchID(lineage string, addr schema.Address, request string) string {
	slug, _ := plan.SlugOf(addr)
	return slug + "-" + plan.HashOf(lineage, addr.String(), "launch", request)[:12]
}

// Launched returns doc with more launched, all of it or, with an error, nothing;
// doc is not changed. A job takes the name of one that has ended, which moves to
// the past.
func Launched(doc *state.Document, all []Launching, now time.Time) (*state.Document, error) {
	next := doc.Clone()
	for _, l := range all {
		launch := l.Launch
		launch.At = now
		var err error
		switch {
		case l.Job != nil:
			err = launchJob(next, l.Job, launch, now)
		case l.Group != nil:
			err = supersedeGroup(next, doc, l.Group.Addr)
			next.Resources[l.Group.Addr] = state.Resource{Digest: DigestOf(l.Group), Since: now, Launch: &launch, Group: l.Group}
		case l.Reservation != nil:
			if r, there := next.Resources[l.Reservation.Addr]; there && (r.Launch == nil || r.Launch.ReleasedAt.IsZero()) {
				err = &NameTakenError{Addr: l.Reservation.Addr}
			}
			next.Resources[l.Reservation.Addr] = state.Resource{Digest: DigestOf(l.Reservation), Since: now, Launch: &launch, Reservation: l.Reservation}
		default:
			err = errors.New("nothing to launch")
		}
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

func launchJob(next *state.Document, spec *schema.Job, launch state.Launch, now time.Time) error {
	if old := next.Jobs[spec.Addr]; old != nil {
		if err := leavesName(spec.Addr, old); err != nil {
			return err
		}
		next.Past[old.ID] = old
	}
	digest, err := schema.DigestOf(spec)
	if err != nil {
		return err
	}
	next.Jobs[spec.Addr] = &state.Job{
		ID: LaunchID(next.Lineage, spec.Addr, launch.Request), Spec: spec, Digest: digest,
		Launch: &launch, Status: schema.JobPending, AdmittedAt: now,
	}
	return nil
}

// DigestOf returns the digest of a spec, or none where it cannot be encoded.
func DigestOf(spec any) schema.Digest {
	digest, err := schema.DigestOf(spec)
	if err != nil { // of a spec without unknown values there is none
		return ""
	}
	return digest
}

// supersedeGroup moves the jobs that doc has of a group to the past: those of the
// next one of that name are placed without them.
func supersedeGroup(next, doc *state.Document, group schema.Address) error {
	for addr, j := range doc.Jobs {
		if addr.GroupAddress() != group {
			continue
		}
		if err := leavesName(addr, j); err != nil {
			return err
		}
		next.Past[j.ID] = j
		delete(next.Jobs, addr)
	}
	return nil
}

// leavesName is nil if the name of a job may be taken again.
func leavesName(addr schema.Address, j *state.Job) error {
	switch {
	case !j.Status.Ended():
		return &NameTakenError{Addr: addr}
	case j.Running() || len(j.Slices) > 0 || len(j.Staged) > 0:
		return &NameTakenError{Addr: addr, Leaving: true}
	}
	return nil
}

// Terminated returns doc with a job asked to end, with it what it launched; by is who
// asks, for people. A job that has ended, or was asked, leaves doc as it is.
func Terminated(doc *state.Document, addr schema.Address, by string) *state.Document {
	j := doc.Jobs[addr]
	if j == nil || j.Status.Ended() || j.Stop {
		return doc
	}
	next := doc.Clone()
	e := *j
	e.Stop, e.StopBy = true, by
	next.Jobs[addr] = &e
	return next
}

// Released returns doc with a launched reservation given up; doc itself if
// there is none of that address, or it was released before.
func Released(doc *state.Document, addr schema.Address, now time.Time) *state.Document {
	r, there := doc.Resources[addr]
	if !there || r.Launch == nil || !r.Launch.ReleasedAt.IsZero() {
		return doc
	}
	next := doc.Clone()
	launch := *r.Launch
	launch.ReleasedAt = now
	r.Launch = &launch
	next.Resources[addr] = r
	return next
}

// Unlaunched returns doc with what was launched and is named handed over to the
// files, which do not declare it: the next plan deletes it.
func Unlaunched(doc *state.Document, named func(schema.Address) bool) *state.Document {
	next := doc.Clone()
	for addr, j := range doc.Jobs {
		if j.Launch != nil && named(addr) {
			e := *j
			e.Launch = nil
			next.Jobs[addr] = &e
		}
	}
	for addr, r := range doc.Resources {
		if r.Launch != nil && named(addr) {
			r.Launch = nil
			next.Resources[addr] = r
		}
	}
	return next
}

// Wanted is what is declared with what was launched and is not to be forgotten
// yet, in address order. It is declared itself where nothing was launched.
func Wanted(declared *schema.Desired, doc *state.Document, now time.Time) *schema.Desired {
	out := *declared
	var jobs []*schema.Job
	oldest := OldestRemembered(doc.Jobs)
	for _, j := range doc.Jobs {
		if j.Launch != nil && !isForgotten(j, oldest, now) {
			jobs = append(jobs, j.Spec)
		}
	}
	var groups []*schema.JobGroup
	var pools []*schema.Reservation
	for _, r := range doc.Resources {
		switch {
		case r.Launch == nil || !r.Launch.ReleasedAt.IsZero():
		case r.Group != nil:
			groups = append(groups, r.Group)
		case r.Reservation != nil:
			pools = append(pools, r.Reservation)
		}
	}
	if len(jobs)+len(groups)+len(pools) == 0 {
		return declared
	}
	out.Jobs = joined(declared.Jobs, jobs, func(j *schema.Job) *schema.Address { return &j.Addr })
	out.Groups = joined(declared.Groups, groups, func(g *schema.JobGroup) *schema.Address { return &g.Addr })
	out.Reservations = joined(declared.Reservations, pools, func(r *schema.Reservation) *schema.Address { return &r.Addr })
	return &out
}

// joined is both lists in address order. declared is so already.
func joined[T any](declared []T, launched []*T, addr func(*T) *schema.Address) []T {
	if len(launched) == 0 {
		return declared
	}
	slices.SortFunc(launched, func(a, b *T) int { return addr(a).Compare(*addr(b)) })
	all := make([]T, 0, len(declared)+len(launched))
	for len(declared)+len(launched) > 0 {
		if len(launched) == 0 || len(declared) > 0 && addr(&declared[0]).Compare(*addr(launched[0])) < 0 {
			all, declared = append(all, declared[0]), declared[1:]
		} else {
			all, launched = append(all, *launched[0]), launched[1:]
		}
	}
	return all
}

// isForgotten reports whether a launched job has ended long ago, or before the
// oldest that is remembered, and holds nothing.
func isForgotten(j *state.Job, oldest, now time.Time) bool {
	at := ForgetAt(j)
	return !at.IsZero() && (!now.Before(at) || j.EndedAt.Before(oldest))
}

// OldestRemembered is when the first of the launched jobs ended that are to be
// remembered, zero if all are.
func OldestRemembered[K comparable](jobs map[K]*state.Job) time.Time {
	if len(jobs) <= MaxRemembered {
		return time.Time{}
	}
	var ends []time.Time
	for _, j := range jobs {
		if !ForgetAt(j).IsZero() {
			ends = append(ends, j.EndedAt)
		}
	}
	if len(ends) <= MaxRemembered {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends[len(ends)-MaxRemembered]
}

// ForgetAt is when a launched job is forgotten, zero while that is not decided.
func ForgetAt(j *state.Job) time.Time {
	if j.Launch == nil || !j.Status.Ended() || j.EndedAt.IsZero() || j.Running() || len(j.Slices)+len(j.Staged) > 0 {
		return time.Time{}
	}
	return j.EndedAt.Add(Retention)
}

// HasEnded reports whether an attempt of a job has, or the job itself.
func HasEnded(parent *state.Job, attempt int) bool {
	if parent == nil || parent.Status.Ended() || parent.Stop {
		return true
	}
	last := parent.Last()
	return attempt > 0 && (last == nil || last.Number > attempt || last.Number == attempt && last.Outcome != "")
}

// LaunchNamespace is the namespace of a job that names none: the first part
// of its name, or all of it, as far as it may name a namespace.
func LaunchNamespace(name string) string {
	first, _, _ := strings.Cut(name, "/")
	var b strings.Builder
	for _, r := range first {
		if r == '_' || r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	out := b.String()
	if !schema.ValidName(out) {
		out = "n" + out
	}
	return out[:min(len(out), 63)]
}
