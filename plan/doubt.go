package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A list is one reading, and one bad reading deletes nothing: a service may answer
// with a list that is empty, short or old, and call it whole. What a list says
// against a slice is believed once a direct read of that slice confirms it, or once
// several lists over a minute have said so and no host of it has reported meanwhile.
// Until then the slice is in doubt: as far as the plan is concerned it is like one
// in a zone that could not be listed.

const (
	// doubtFor and doubtLists are for how long, and in how many lists in a row, a
	// reading has to stand that no direct read confirms.
	doubtFor   = time.Minute
	doubtLists = 3
)

// DoubtKind is the closed set of what lists say against a slice.
type DoubtKind string

// The kinds.
const (
	DoubtAbsent DoubtKind = "absent" // it is not listed
	DoubtDead   DoubtKind = "dead"   // it is listed as dead, or as going though it was not asked to go
	DoubtShape  DoubtKind = "shape"  // it is listed in another shape than the recorded one
	// DoubtUnwanted: it is listed, its hosts report, and nothing is recorded of it.
	DoubtUnwanted DoubtKind = "unwanted"
	// DoubtSkipped: the provider lists something of that name and cannot read it.
	// No read of it helps.
	DoubtSkipped DoubtKind = "skipped"
)

// Doubt is a slice against which a list speaks.
type Doubt struct {
	Slice schema.SliceSpec `json:"slice"`
	Kind  DoubtKind        `json:"kind"`
	// Open says that nothing confirms or refutes it yet.
	Open bool `json:"-"`
}

// Confirmation is what is known of a slice in doubt beside the last list.
type Confirmation struct {
	Since  time.Time          // of the first list that spoke against it
	Lists  int                // that have done so, in a row
	Answer Answer             // of the last direct read
	Status schema.SliceStatus // with AnswerFound: what it found
}

// Answer is what the last direct read of a slice said.
type Answer string

// The answers.
const (
	AnswerNone  Answer = ""      // it was not read, or could not be
	AnswerGone  Answer = "gone"  // the provider says that there is no such slice
	AnswerFound Answer = "found" // it is there
)

// doubtReadings takes back what the lists say against slices, as far as it is not
// confirmed, and names these slices as doubts.
func (d *differ) doubtReadings() {
	d.doubtSkipped()
	for name, s := range d.doc.Slices {
		st, listed := d.slices[name]
		if kind := d.spokenAgainst(s, st, listed); kind != "" && d.doubted[name] == "" {
			d.doubtReading(name, &s.Spec, kind)
		}
	}
	for name, st := range d.slices {
		if d.doc.Slices[name] == nil && !d.isSilentAt(name) && len(d.obs.Hosts[name]) > 0 {
			d.doubtUnwanted(name, st)
		}
	}
	slices.SortFunc(d.plan.Doubts, func(a, b Doubt) int {
		return cmp.Or(cmp.Compare(a.Slice.Provider, b.Slice.Provider), cmp.Compare(a.Slice.Name, b.Slice.Name))
	})
}

// spokenAgainst is what the lists say against a recorded slice, "" for nothing that
// would come unexpected.
func (d *differ) spokenAgainst(s *state.Slice, st *schema.SliceStatus, listed bool) DoubtKind {
	switch {
	case s.Spec.On != "", !s.Seen && s.AskedAt.IsZero(), !d.listedIn(s.Spec.Provider, s.Spec.Zone):
		return ""
	case !listed && s.Seen && s.DeleteAt.IsZero():
		return DoubtAbsent
	case !listed, !s.Terminating.IsZero(): // it was listed as going before, or it is to go whatever it is
		return ""
	case st.Phase == schema.SliceDead, st.Phase == schema.SliceDeleting:
		return DoubtDead
	case st.Spec.Fixed() != s.Spec.Fixed():
		return DoubtShape
	}
	return ""
}

// doubtReading believes the direct read of a slice, or what lists have said for long
// while its hosts were silent; until there is either, the slice is in doubt.
func (d *differ) doubtReading(name string, spec *schema.SliceSpec, kind DoubtKind) {
	d.plan.Doubts = append(d.plan.Doubts, Doubt{Slice: *spec, Kind: kind})
	check := d.obs.Confirmations[name]
	switch check.Answer {
	case AnswerGone:
		delete(d.slices, name)
		return
	case AnswerFound:
		found := check.Status
		d.takeIn(&found)
		return
	case AnswerNone:
	}
	if d.isRepeated(&check) && d.isSilentAt(name) {
		return
	}
	delete(d.slices, name)
	d.leaveOpen(name, kind)
}

// doubtUnwanted keeps a slice that reports and is not recorded from being deleted
// until a direct read, or several lists, show it again.
func (d *differ) doubtUnwanted(name string, st *schema.SliceStatus) {
	d.plan.Doubts = append(d.plan.Doubts, Doubt{Slice: d.madeAs(st.Spec), Kind: DoubtUnwanted})
	check := d.obs.Confirmations[name]
	switch check.Answer {
	case AnswerGone:
		delete(d.slices, name)
	case AnswerFound:
		if check.Status.Spec.Stack != d.stack {
			delete(d.slices, name)
		}
	case AnswerNone:
		if !d.isRepeated(&check) {
			d.leaveOpen(name, DoubtUnwanted)
		}
	}
}

// doubtSkipped has those slices be in doubt that a provider lists and cannot read.
func (d *differ) doubtSkipped() {
	for provider, inv := range d.obs.Inventories {
		for _, item := range inv.Skipped {
			s := d.doc.Slices[item.Name]
			if _, listed := d.slices[item.Name]; s != nil && !listed && s.Spec.Provider == provider && s.Spec.Zone == item.Zone {
				d.inDoubt(item.Name, DoubtSkipped)
			}
		}
	}
}

// leaveOpen has a slice be in doubt, which was named as the last one of the plan.
func (d *differ) leaveOpen(name string, kind DoubtKind) {
	d.plan.Doubts[len(d.plan.Doubts)-1].Open = true
	d.inDoubt(name, kind)
}

func (d *differ) inDoubt(name string, kind DoubtKind) {
	if d.doubted == nil {
		d.doubted = map[string]DoubtKind{}
	}
	d.doubted[name] = kind
}

// isRepeated reports whether lists have said the same for long enough.
func (d *differ) isRepeated(c *Confirmation) bool {
	if c.Since.IsZero() {
		return false
	}
	d.wakeAt(c.Since.Add(doubtFor))
	return c.Lists >= doubtLists && d.now.Sub(c.Since) >= doubtFor
}

// isSilentAt reports whether no host of a slice has reported for so long that it
// would count as lost, or none ever has.
func (d *differ) isSilentAt(name string) bool {
	hosts := d.obs.Hosts[name]
	for i := range hosts {
		if silent := hosts[i].SilentAt(d.obs.Attended); silent < HostTimeout {
			d.wakeAt(d.now.Add(HostTimeout - silent))
			return false
		}
	}
	return true
}

// isUnconfirmed reports whether a slice may be there although it is not taken for
// listed.
func (d *differ) isUnconfirmed(spec *schema.SliceSpec) bool {
	kind, doubted := d.doubted[spec.Name]
	return doubted && kind != DoubtUnwanted
}

// unconfirmed is what waits for the confirmation of what a list says of a slice;
// nothing where none is in doubt.
func (d *differ) unconfirmed(spec *schema.SliceSpec) reason {
	kind, doubted := d.doubted[spec.Name]
	if !doubted {
		return reason{}
	}
	return because(WaitUnconfirmed, fmt.Sprintf("slice %s %s; nothing is done about it before that is confirmed", spec.Name, inDoubtBecause(kind)))
}

func inDoubtBecause(kind DoubtKind) string {
	switch kind {
	case DoubtAbsent:
		return "is missing from its provider's list"
	case DoubtDead:
		return "is dead by its provider's list"
	case DoubtShape:
		return "has another shape by its provider's list"
	case DoubtUnwanted:
		return "carries this stack's mark, its hosts report, and nothing is recorded of it"
	case DoubtSkipped:
		return "is listed by its provider and cannot be read"
	}
	return "is in doubt"
}
