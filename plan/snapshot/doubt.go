package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A list is one reading, and one bad reading deletes nothing: a service may answer
// with a list that is empty, short or old, and call it whole. What a list says
// against a slice is believed once a direct read of that slice confirms it, or once
// several lists over a minute have said so and no host of it has reported meanwhile.
// Until then the slice is in doubt: as far as the plan is concerned it is like one
// in a zone that could not be listed.
//
// Nor does a repair wait for lists: what is to be decided about a slice that a list
// does not show, or may show as it was, is read directly too, so that a slice which is
// lost is deleted and asked for again although every list is wrong, or there is none.

const (
	// DoubtFor and doubtLists are for how long, and in how many lists in a row, a
	// reading has to stand that no direct read confirms.
	DoubtFor   = time.Minute
	doubtLists = 3
	// comingFor is how long after it was asked for a slice may be missing from lists
	// before it is read directly, and bootingFor how long one that is listed may be
	// without a report.
	comingFor  = 15 * time.Second
	bootingFor = 5 * time.Minute
)

// The answers.
const (
	AnswerNone  plan.Answer = ""      // it was not read, or could not be
	AnswerGone  plan.Answer = "gone"  // the provider says that there is no such slice
	AnswerFound plan.Answer = "found" // it is there
)

// doubtReadings takes back what the lists say against slices, as far as it is not
// confirmed, and names these slices as doubts.
func (d *Evidence) doubtReadings() {
	d.doubtSkipped()
	for name, s := range d.Doc.Slices {
		st, listed := d.Listed[name]
		switch kind := d.reasonToRead(s, st, listed); {
		case kind == "" || d.Doubted[name] != "":
		case kind.IsAgainst():
			d.requireDirectRead(name, &s.Spec, kind)
		default:
			d.preferDirectRead(name, &s.Spec, kind)
		}
	}
	for name, st := range d.Listed {
		if d.Doc.Slices[name] == nil {
			d.doubtUnwanted(name, st)
		}
	}
	slices.SortFunc(d.Plan.Doubts, func(a, b plan.Doubt) int {
		return cmp.Or(cmp.Compare(a.Slice.Provider, b.Slice.Provider), cmp.Compare(a.Slice.Name, b.Slice.Name))
	})
}

// reasonToRead is why a recorded slice is to be read directly, "" for no reason.
func (d *Evidence) reasonToRead(s *state.Slice, st *schema.SliceStatus, listed bool) plan.DoubtKind {
	switch {
	case s.Spec.On != "":
		return ""
	case !d.ListedIn(s.Spec.Provider, s.Spec.Zone):
		if !s.Terminating.IsZero() || s.UpAt.IsZero() || d.reportedThenSilent(s.Spec.Name) {
			return plan.DoubtUnlisted
		}
		return ""
	case !listed && s.Listed:
		return plan.DoubtAbsent
	case !listed:
		return d.creationOverdue(s)
	case !s.Terminating.IsZero():
		return plan.DoubtGoing
	case !s.Listed && d.isFormer(s, st):
		return plan.DoubtFormer
	case st.Phase == schema.SliceDead, st.Phase == schema.SliceDeleting:
		return plan.DoubtDead
	case !st.Spec.SameFixed(&s.Spec):
		return plan.DoubtShape
	case len(st.Down) > 0:
		return plan.DoubtDown
	case d.reportedThenSilent(s.Spec.Name), d.bootOverdue(s, st):
		return plan.DoubtSilent
	}
	return ""
}

// creationOverdue finds a slice that was asked for a while ago and was never listed.
func (d *Evidence) creationOverdue(s *state.Slice) plan.DoubtKind {
	if s.PendingSince.IsZero() || s.Failed != "" {
		return ""
	}
	late := s.PendingSince.Add(comingFor)
	d.WakeAt(late)
	if d.Now.Before(late) {
		return ""
	}
	return plan.DoubtComing
}

// isFormer reports whether what is listed may be what had the name of a slice before
// that was asked for. Hosts that report are the new ones': what is left of others is
// cleared away before a slice is asked for.
func (d *Evidence) isFormer(s *state.Slice, st *schema.SliceStatus) bool {
	if s.PendingSince.IsZero() {
		return true
	}
	return st.CreatedAt.Before(s.PendingSince) && len(d.Obs.Hosts[s.Spec.Name]) == 0
}

// bootOverdue reports whether no host of a slice has reported for long since it was
// asked for, though it does not wait for its turn in the cloud.
func (d *Evidence) bootOverdue(s *state.Slice, st *schema.SliceStatus) bool {
	if !s.UpAt.IsZero() || st.Waiting || len(d.Obs.Hosts[s.Spec.Name]) > 0 {
		return false
	}
	late := s.PendingSince.Add(bootingFor)
	d.WakeAt(late)
	return !d.Now.Before(late)
}

// reportedThenSilent reports whether a slice has hosts that reported once, and none of them has for
// so long that it would count as lost.
func (d *Evidence) reportedThenSilent(name string) bool {
	hosts := d.Obs.Hosts[name]
	for i := range hosts {
		if hosts[i].Lives() {
			return false
		}
		if silent := hosts[i].SilentFor(d.Obs.Monitored); silent < HostTimeout {
			d.WakeAt(d.Now.Add(HostTimeout - silent))
			return false
		}
	}
	return len(hosts) > 0
}

// requireDirectRead believes the direct read of a slice, or what lists have said for long
// while its hosts were silent; until there is either, the slice is in doubt.
func (d *Evidence) requireDirectRead(name string, spec *schema.SliceSpec, kind plan.DoubtKind) {
	d.Plan.Doubts = append(d.Plan.Doubts, plan.Doubt{Slice: *spec, Kind: kind})
	check := d.confirmation(name)
	if check.Answer != AnswerNone {
		d.believe(name, &check)
		return
	}
	if d.isRepeated(&check) && (kind == plan.DoubtFormer || d.noneReports(name)) {
		return
	}
	delete(d.Listed, name)
	d.markLastDoubtOpen(name, kind)
}

// preferDirectRead believes the direct read of a slice, and the lists as long as there is none.
func (d *Evidence) preferDirectRead(name string, spec *schema.SliceSpec, kind plan.DoubtKind) {
	d.Plan.Doubts = append(d.Plan.Doubts, plan.Doubt{Slice: *spec, Kind: kind})
	if check := d.confirmation(name); check.Answer != AnswerNone {
		d.believe(name, &check)
	}
}

// confirmation is what is known of a slice in doubt. What was read before the slice was
// asked for, or listed for the first time, says nothing about it.
func (d *Evidence) confirmation(name string) plan.Confirmation {
	check := d.Obs.Confirmations[name]
	if s := d.Next.Slices[name]; s != nil && !s.PendingSince.IsZero() && !check.ReadAt.After(s.PendingSince) {
		check.Answer, check.Status = AnswerNone, schema.SliceStatus{}
	}
	return check
}

// believe takes in what a direct read of a slice said.
func (d *Evidence) believe(name string, check *plan.Confirmation) {
	switch check.Answer {
	case AnswerNone:
		return
	case AnswerGone:
		delete(d.Listed, name)
	case AnswerFound:
		found := check.Status
		d.takeIn(&found)
	}
	if d.ReadDirectly == nil {
		d.ReadDirectly = map[string]bool{}
	}
	d.ReadDirectly[name] = true
}

// doubtUnwanted keeps a slice that is not recorded from being deleted until a direct
// read, or several lists, show it again: the list may be one of before it went.
func (d *Evidence) doubtUnwanted(name string, st *schema.SliceStatus) {
	d.Plan.Doubts = append(d.Plan.Doubts, plan.Doubt{Slice: d.MadeAs(st.Spec), Kind: plan.DoubtUnwanted})
	check := d.Obs.Confirmations[name]
	switch check.Answer {
	case AnswerGone:
		delete(d.Listed, name)
	case AnswerFound:
		if check.Status.Spec.Stack != d.Stack {
			delete(d.Listed, name)
		}
	case AnswerNone:
		if !d.isRepeated(&check) {
			d.markLastDoubtOpen(name, plan.DoubtUnwanted)
		}
	}
}

// doubtSkipped has those slices be in doubt that a provider lists and cannot read.
func (d *Evidence) doubtSkipped() {
	for provider, inv := range d.Obs.Inventories {
		for _, item := range inv.Skipped {
			s := d.Doc.Slices[item.Name]
			if _, listed := d.Listed[item.Name]; s != nil && !listed && s.Spec.Provider == provider && s.Spec.Zone == item.Zone {
				d.inDoubt(item.Name, plan.DoubtSkipped)
			}
		}
	}
}

// markLastDoubtOpen has the slice that is the plan's last doubt be in doubt until it is confirmed.
func (d *Evidence) markLastDoubtOpen(name string, kind plan.DoubtKind) {
	d.Plan.Doubts[len(d.Plan.Doubts)-1].Open = true
	d.inDoubt(name, kind)
}

func (d *Evidence) inDoubt(name string, kind plan.DoubtKind) {
	if d.Doubted == nil {
		d.Doubted = map[string]plan.DoubtKind{}
	}
	d.Doubted[name] = kind
}

// IsUnsure reports whether a slice that was asked for and never listed may be there
// nonetheless. It is read before it is forgotten.
func (d *Evidence) IsUnsure(s *state.Slice) bool {
	if s.Spec.On != "" || s.Listed || s.PendingSince.IsZero() {
		return false
	}
	check := d.confirmation(s.Spec.Name)
	if check.Answer == AnswerGone || d.isRepeated(&check) {
		return false
	}
	if !d.HasDoubt(s.Spec.Name) {
		d.Plan.Doubts = append(d.Plan.Doubts, plan.Doubt{Slice: s.Spec, Kind: plan.DoubtComing, Open: true})
	}
	return true
}

// HasDoubt reports whether a slice is among the doubts of the plan. All slices may be asked for, and
// all may be in doubt, so that those are looked up by name; their list only grows.
func (d *Evidence) HasDoubt(slice string) bool {
	for _, doubt := range d.Plan.Doubts[d.doubtsSeen:] {
		if d.doubtNames == nil {
			d.doubtNames = make(map[string]bool, len(d.Plan.Doubts))
		}
		d.doubtNames[doubt.Slice.Name] = true
	}
	d.doubtsSeen = len(d.Plan.Doubts)
	return d.doubtNames[slice]
}

// isRepeated reports whether lists have said the same for long enough.
func (d *Evidence) isRepeated(c *plan.Confirmation) bool {
	if c.Since.IsZero() {
		return false
	}
	d.WakeAt(c.Since.Add(DoubtFor))
	return c.Lists >= doubtLists && d.Now.Sub(c.Since) >= DoubtFor
}

// noneReports reports whether no host of a slice has reported for so long that it
// would count as lost, or none ever has.
func (d *Evidence) noneReports(name string) bool {
	if d.Obs.Unread[name] {
		return false
	}
	hosts := d.Obs.Hosts[name]
	for i := range hosts {
		if hosts[i].Lives() {
			return false
		}
		if silent := hosts[i].SilentFor(d.Obs.Monitored); silent < HostTimeout {
			d.WakeAt(d.Now.Add(HostTimeout - silent))
			return false
		}
	}
	return true
}

// isUnconfirmed reports whether a slice may be there although it is not taken for
// listed.
func (d *Evidence) isUnconfirmed(spec *schema.SliceSpec) bool {
	kind, doubted := d.Doubted[spec.Name]
	return doubted && kind != plan.DoubtUnwanted
}

// Unconfirmed is what waits for the confirmation of what a list says of a slice;
// nothing where none is in doubt.
func (d *Evidence) Unconfirmed(spec *schema.SliceSpec) plan.Reason {
	kind, doubted := d.Doubted[spec.Name]
	if !doubted {
		return plan.Reason{}
	}
	return plan.Because(plan.WaitUnconfirmed, fmt.Sprintf("slice %s %s; nothing is done about it before that is confirmed", spec.Name, inDoubtBecause(kind)))
}

func inDoubtBecause(kind plan.DoubtKind) string {
	switch kind {
	case plan.DoubtAbsent:
		return "is missing from its provider's list"
	case plan.DoubtDead:
		return "is dead by its provider's list"
	case plan.DoubtShape:
		return "has another shape by its provider's list"
	case plan.DoubtFormer:
		return "is listed by its provider as made before it was asked for"
	case plan.DoubtUnwanted:
		return "carries this stack's mark, and nothing is recorded of it"
	case plan.DoubtSkipped:
		return "is listed by its provider and cannot be read"
	case plan.DoubtGoing:
		return "is to go and is listed still"
	case plan.DoubtComing:
		return "was asked for and is not listed by its provider yet"
	case plan.DoubtDown:
		return "has hosts that are down by its provider's list"
	case plan.DoubtSilent:
		return "is listed by its provider and no host of it reports"
	case plan.DoubtUnlisted:
		return "is where its provider could not be listed"
	}
	return "is in doubt"
}
