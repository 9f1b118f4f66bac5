package amend

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Reseal returns a copy of a state in which all that a former key sealed is sealed
// with the present one, and digests say the same of the new texts as before of the
// old ones, so that nothing has changed for a plan. doc is not changed. A state
// that has nothing sealed by a former key comes back equal, but for the digests of
// variables, which are dropped.
func Reseal(doc *state.Document, r schema.Resealer) (*state.Document, error) {
	next := doc.Clone()
	next.Variables = nil // digests of values that the state does not have: the next apply makes new ones
	var err error
	if next.Outputs, err = schema.ResealOutputs(doc.Outputs, r); err != nil {
		return nil, fmt.Errorf("seal the state anew: %w", err)
	}
	next.Desired.Jobs = slices.Clone(doc.Desired.Jobs)
	for i := range next.Desired.Jobs {
		if next.Desired.Jobs[i], err = next.Desired.Jobs[i].Reseal(r); err != nil {
			return nil, fmt.Errorf("seal the state anew: %w", err)
		}
	}
	if err := resealNotifications(doc, next, r); err != nil {
		return nil, fmt.Errorf("seal the state anew: %w", err)
	}
	digests := resealedDigests(doc, next)
	for i := range next.Desired.Jobs {
		next.Desired.Jobs[i].Lifecycle = digests.lifecycle(next.Desired.Jobs[i].Lifecycle)
	}
	for addr, j := range doc.Jobs {
		if next.Jobs[addr], err = digests.job(j, r); err != nil {
			return nil, fmt.Errorf("seal the state anew: %w", err)
		}
	}
	for id, j := range doc.Past {
		if next.Past[id], err = digests.job(j, r); err != nil {
			return nil, fmt.Errorf("seal the state anew: %w", err)
		}
	}
	return next, nil
}

// ResealRun is Reseal for what is assigned.
func ResealRun(run *state.Run, r schema.Resealer) (*state.Run, error) {
	if run == nil {
		return nil, nil
	}
	next := *run
	var err error
	if next.Spec, err = run.Spec.Reseal(r); err != nil {
		return nil, fmt.Errorf("seal what is assigned anew: %w", err)
	}
	next.Digest, err = redigested(&run.Spec, &next.Spec, run.Digest)
	return &next, err
}

// redigested is what a digest becomes: one of the spec before is of the spec after,
// another one (of a former version) stays, as the specs are compared then.
func redigested(before, after *schema.Job, recorded schema.Digest) (schema.Digest, error) {
	digest, err := schema.DigestOf(before)
	if err != nil || digest != recorded {
		return recorded, err
	}
	return schema.DigestOf(after)
}

// triggerDigests are what triggers' digests become.
type triggerDigests struct {
	before, after map[schema.Trigger]schema.Digest
}

func resealedDigests(doc, next *state.Document) triggerDigests {
	var all []schema.Trigger
	for _, j := range doc.Jobs {
		all = append(all, j.Spec.Lifecycle.TriggeredBy...)
	}
	for i := range doc.Desired.Jobs {
		all = append(all, doc.Desired.Jobs[i].Lifecycle.TriggeredBy...)
	}
	if len(all) == 0 {
		return triggerDigests{}
	}
	return triggerDigests{change.TriggerDigests(&doc.Desired, all), change.TriggerDigests(&next.Desired, all)}
}

// lifecycle is a lifecycle whose triggers have not fired. A digest of something that
// has changed since stays: that change is still to be heeded.
func (d triggerDigests) lifecycle(l schema.Lifecycle) schema.Lifecycle {
	l.TriggeredBy = slices.Clone(l.TriggeredBy)
	for i, t := range l.TriggeredBy {
		named := schema.Trigger{Addr: t.Addr, Path: t.Path}
		if t.Digest != "" && t.Digest == d.before[named] {
			l.TriggeredBy[i].Digest = d.after[named]
		}
	}
	return l
}

func (d triggerDigests) job(j *state.Job, r schema.Resealer) (*state.Job, error) {
	if j.Spec == nil {
		return j, nil
	}
	next := *j
	spec, err := j.Spec.Reseal(r)
	if err != nil {
		return nil, err
	}
	spec.Lifecycle = d.lifecycle(spec.Lifecycle)
	next.Spec = &spec
	next.Digest, err = redigested(j.Spec, &spec, j.Digest)
	return &next, err
}
