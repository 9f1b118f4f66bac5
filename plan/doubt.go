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
//
// Nor does a repair wait for lists: what is to be decided about a slice that a list
// does not show, or may show as it was, is read directly too, so that a slice which is
// lost is deleted and asked for again although every list is wrong, or there is none.

const (
	// doubtFor and doubtLists are for how long, and in how many lists in a row, a
	// reading has to stand that no direct read confirms.
	doubtFor   = time.Minute
	doubtLists = 3
	// comingFor is how long after it was asked for a slice may be missing from lists
	// before it is read directly, and bootingFor how long one that is listed may be
	// without a report.
	comingFor  = 15 * time.Second
	bootingFor = 5 * time.Minute
)

// DoubtKind is the closed set of what lists say against a slice.
type DoubtKind string

// The kinds.
const (
	DoubtAbsent DoubtKind = "absent" // it is not listed
	DoubtDead   DoubtKind = "dead"   // it is listed as dead, or as going though it was not asked to go
	DoubtShape  DoubtKind = "shape"  // it is listed in another shape than the recorded one
	// DoubtFormer: it is listed as made before it was asked for, so that it may be what
	// had its name before.
	DoubtFormer DoubtKind = "former"
	// DoubtUnwanted: it is listed, and nothing is recorded of it.
	DoubtUnwanted DoubtKind = "unwanted"
	// DoubtSkipped: the provider lists something of that name and cannot read it.
	// No read of it helps.
	DoubtSkipped DoubtKind = "skipped"

	// These say nothing against a slice. It is read so that what is to be done does
	// not wait for a list, which stands as long as nothing was read.

	DoubtGoing    DoubtKind = "going"    // it is to go and is listed still
	DoubtComing   DoubtKind = "coming"   // it was asked for and is not listed yet
	DoubtDown     DoubtKind = "down"     // it is listed with hosts that are down
	DoubtSilent   DoubtKind = "silent"   // it is listed as alive and no host of it reports
	DoubtUnlisted DoubtKind = "unlisted" // its place was not listed, and something is to be done about it
)

// Pace is how long a doubt of a kind stands before its slice is read, and after what
// time it is read again.
func (k DoubtKind) Pace() (first, again time.Duration) {
	switch k {
	case DoubtAbsent, DoubtDead, DoubtShape, DoubtFormer, DoubtUnwanted, DoubtSkipped, DoubtDown, DoubtUnlisted:
		return 0, 10 * time.Second
	case DoubtComing, DoubtSilent:
		return 0, 30 * time.Second
	case DoubtGoing: // deletions take minutes, and a list mostly shows their end
		return 20 * time.Second, 30 * time.Second
	}
	return 0, 10 * time.Second
}

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
	ReadAt time.Time          // when that was begun
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
		switch kind := d.spokenAgainst(s, st, listed); {
		case kind == "" || d.doubted[name] != "":
		case kind.IsAgainst():
			d.doubtReading(name, &s.Spec, kind)
		default:
			d.readBeside(name, &s.Spec, kind)
		}
	}
	for name, st := range d.slices {
		if d.doc.Slices[name] == nil {
			d.doubtUnwanted(name, st)
		}
	}
	slices.SortFunc(d.plan.Doubts, func(a, b Doubt) int {
		return cmp.Or(cmp.Compare(a.Slice.Provider, b.Slice.Provider), cmp.Compare(a.Slice.Name, b.Slice.Name))
	})
}

// IsAgainst reports whether a kind says something against a slice, which is not
// believed unread.
func (k DoubtKind) IsAgainst() bool {
	switch k {
	case DoubtAbsent, DoubtDead, DoubtShape, DoubtFormer, DoubtUnwanted, DoubtSkipped:
		return true
	case DoubtGoing, DoubtComing, DoubtDown, DoubtSilent, DoubtUnlisted:
	}
	return false
}

// spokenAgainst is why a recorded slice is to be read directly, "" for no reason.
func (d *differ) spokenAgainst(s *state.Slice, st *schema.SliceStatus, listed bool) DoubtKind {
	switch {
	case s.Spec.On != "":
		return ""
	case !d.listedIn(s.Spec.Provider, s.Spec.Zone):
		if !s.Terminating.IsZero() || s.BornAt.IsZero() || d.isMute(s.Spec.Name) {
			return DoubtUnlisted
		}
		return ""
	case !listed && s.Seen:
		return DoubtAbsent
	case !listed:
		return d.comesLate(s)
	case !s.Terminating.IsZero():
		return DoubtGoing
	case !s.Seen && d.isFormer(s, st):
		return DoubtFormer
	case st.Phase == schema.SliceDead, st.Phase == schema.SliceDeleting:
		return DoubtDead
	case st.Spec.Fixed() != s.Spec.Fixed():
		return DoubtShape
	case len(st.Down) > 0:
		return DoubtDown
	case d.isMute(s.Spec.Name), d.bootsLate(s, st):
		return DoubtSilent
	}
	return ""
}

// comesLate finds a slice that was asked for a while ago and was never listed.
func (d *differ) comesLate(s *state.Slice) DoubtKind {
	if s.AskedAt.IsZero() || s.Failed != "" {
		return ""
	}
	late := s.AskedAt.Add(comingFor)
	d.wakeAt(late)
	if d.now.Before(late) {
		return ""
	}
	return DoubtComing
}

// isFormer reports whether what is listed may be what had the name of a slice before
// that was asked for. Hosts that report are the new ones': what is left of others is
// cleared away before a slice is asked for.
func (d *differ) isFormer(s *state.Slice, st *schema.SliceStatus) bool {
	if s.AskedAt.IsZero() {
		return true
	}
	return st.CreatedAt.Before(s.AskedAt) && len(d.obs.Hosts[s.Spec.Name]) == 0
}

// bootsLate reports whether no host of a slice has reported for long since it was
// asked for, though it does not wait for its turn in the cloud.
func (d *differ) bootsLate(s *state.Slice, st *schema.SliceStatus) bool {
	if !s.BornAt.IsZero() || st.Waiting || len(d.obs.Hosts[s.Spec.Name]) > 0 {
		return false
	}
	late := s.AskedAt.Add(bootingFor)
	d.wakeAt(late)
	return !d.now.Before(late)
}

// isMute reports whether a slice has hosts that reported once, and none of them has for
// so long that it would count as lost.
func (d *differ) isMute(name string) bool {
	hosts := d.obs.Hosts[name]
	for i := range hosts {
		if hosts[i].SilentAt(d.obs.Attended) < HostTimeout {
			return false
		}
	}
	return len(hosts) > 0
}

// doubtReading believes the direct read of a slice, or what lists have said for long
// while its hosts were silent; until there is either, the slice is in doubt.
func (d *differ) doubtReading(name string, spec *schema.SliceSpec, kind DoubtKind) {
	d.plan.Doubts = append(d.plan.Doubts, Doubt{Slice: *spec, Kind: kind})
	check := d.confirmation(name)
	if check.Answer != AnswerNone {
		d.believe(name, &check)
		return
	}
	if d.isRepeated(&check) && (kind == DoubtFormer || d.isSilentAt(name)) {
		return
	}
	delete(d.slices, name)
	d.leaveOpen(name, kind)
}

// readBeside believes the direct read of a slice, and the lists as long as there is none.
func (d *differ) readBeside(name string, spec *schema.SliceSpec, kind DoubtKind) {
	d.plan.Doubts = append(d.plan.Doubts, Doubt{Slice: *spec, Kind: kind})
	if check := d.confirmation(name); check.Answer != AnswerNone {
		d.believe(name, &check)
	}
}

// confirmation is what is known of a slice in doubt. What was read before the slice was
// asked for, or listed for the first time, says nothing about it.
func (d *differ) confirmation(name string) Confirmation {
	check := d.obs.Confirmations[name]
	if s := d.next.Slices[name]; s != nil && !s.AskedAt.IsZero() && !check.ReadAt.After(s.AskedAt) {
		check.Answer, check.Status = AnswerNone, schema.SliceStatus{}
	}
	return check
}

// believe takes in what a direct read of a slice said.
func (d *differ) believe(name string, check *Confirmation) {
	switch check.Answer {
	case AnswerNone:
		return
	case AnswerGone:
		delete(d.slices, name)
	case AnswerFound:
		found := check.Status
		d.takeIn(&found)
	}
	if d.readDirectly == nil {
		d.readDirectly = map[string]bool{}
	}
	d.readDirectly[name] = true
}

// doubtUnwanted keeps a slice that is not recorded from being deleted until a direct
// read, or several lists, show it again: the list may be one of before it went.
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

// isUnsure reports whether a slice that was asked for and never listed may be there
// nonetheless. It is read before it is forgotten.
func (d *differ) isUnsure(s *state.Slice) bool {
	if s.Spec.On != "" || s.Seen || s.AskedAt.IsZero() {
		return false
	}
	check := d.confirmation(s.Spec.Name)
	if check.Answer == AnswerGone || d.isRepeated(&check) {
		return false
	}
	if !slices.ContainsFunc(d.plan.Doubts, func(known Doubt) bool { return known.Slice.Name == s.Spec.Name }) {
		d.plan.Doubts = append(d.plan.Doubts, Doubt{Slice: s.Spec, Kind: DoubtComing, Open: true})
	}
	return true
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
	case DoubtFormer:
		return "is listed by its provider as made before it was asked for"
	case DoubtUnwanted:
		return "carries this stack's mark, and nothing is recorded of it"
	case DoubtSkipped:
		return "is listed by its provider and cannot be read"
	case DoubtGoing:
		return "is to go and is listed still"
	case DoubtComing:
		return "was asked for and is not listed by its provider yet"
	case DoubtDown:
		return "has hosts that are down by its provider's list"
	case DoubtSilent:
		return "is listed by its provider and no host of it reports"
	case DoubtUnlisted:
		return "is where its provider could not be listed"
	}
	return "is in doubt"
}
