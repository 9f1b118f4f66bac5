package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ZoneHealth adds where slices may be asked for now: what is known of the places
// that refused capacity.
type ZoneHealth struct {
	*snapshot.Evidence

	Tried map[string]int // attempts under way by place, see trying
}

// CannotAsk returns why a slice cannot be asked for now, or no reason.
func (d *ZoneHealth) CannotAsk(spec *schema.SliceSpec) plan.Reason {
	p := spec.Provider
	if why := d.Obs.Inventories[p].Unlisted[spec.Zone]; why != "" {
		return plan.Because(plan.WaitProvider, fmt.Sprintf("what is in %s could not be listed: %s", spec.Zone, why))
	}
	if why, unreachable := d.Obs.Unreachable[p]; unreachable {
		return plan.Because(plan.WaitProvider, fmt.Sprintf("provider %s cannot be asked for its slices: %s", p, why.Text))
	}
	if why := d.Unconfirmed(spec); !why.None() {
		return why
	}
	return plan.Because(plan.WaitProvider, fmt.Sprintf("provider %s was not asked for its slices", p))
}

// Zone health is what is known of the places where capacity is asked for: a zone for
// one TPU type and tier, or for quotas the whole region and generation. A place
// where it was refused, or where slices are lost early, is left alone for a while, which
// doubles with every failure in a row; meanwhile others are tried in the declared
// order. When the time is over, a few slices try it before all do.

const (
	// EarlyLoss is the age below which the end of a slice counts against its place.
	EarlyLoss = 30 * time.Minute
	// sameMoment is the time within which failures of a place have one cause.
	sameMoment = 15 * time.Second
	// fairAfter is how long after its last failure a place counts as a new one.
	fairAfter = time.Hour
	// forgetAfter is when nothing is remembered of it any more.
	forgetAfter = 24 * time.Hour
	// fairShare is how many slices must come up for each that was lost early for
	// the place to count as a good one.
	fairShare = 4
	// ProbeLimit is how many slices at a time try a place that has failed.
	ProbeLimit = 4
)

// Failure is what came of an action that did not work.
type Failure struct {
	Kind  schema.ErrorKind
	Text  string
	Brief string        // the same without what was asked for; "": Text
	After time.Duration // how long to leave it alone, where that is known
}

// QuotaPlace is where the quota for it is counted.
func QuotaPlace(s *schema.SliceSpec) string {
	if s.Zone == "" {
		return ""
	}
	generation, _, _ := strings.Cut(cmp.Or(s.TPU, s.MachineType, "machines"), "-")
	if s.GPU.Count > 0 { // counted by the type of GPU
		generation = s.GPU.Type
	}
	return accelerators.RegionOf(s.Zone) + "/" + generation + "/" + plan.TierOf(s)
}

// counts reports whether a failure speaks of its place, and of which one.
func counts(spec *schema.SliceSpec, kind schema.ErrorKind) (place string, ok bool) {
	switch kind {
	case schema.ErrorCapacity, schema.ErrorReservation, schema.ErrorPreempted:
		place = plan.StockPlace(spec)
	case schema.ErrorQuota:
		place = QuotaPlace(spec)
	case schema.ErrorRate, schema.ErrorConflict, schema.ErrorInvalid, schema.ErrorPermission, schema.ErrorUnavailable:
	}
	return place, place != ""
}

// holdOff is how long a place is left alone after its n-th failure in a row.
func holdOff(kind schema.ErrorKind, n int) time.Duration {
	first, most := 30*time.Second, 10*time.Minute // a stockout
	switch kind {
	case schema.ErrorQuota: // nothing comes free by asking
		first, most = 5*time.Minute, 30*time.Minute
	case schema.ErrorReservation:
		first, most = time.Minute, 10*time.Minute
	case schema.ErrorPreempted:
		first, most = 30*time.Second, 30*time.Minute
	case schema.ErrorCapacity, schema.ErrorRate, schema.ErrorConflict, schema.ErrorInvalid, schema.ErrorPermission, schema.ErrorUnavailable:
	}
	return min(first<<min(n-1, 10), most)
}

// worsened is the health of a place after another failure. Those that were under
// way when the place was given up say nothing new.
func worsened(was state.ZoneHealth, f Failure, now time.Time) state.ZoneHealth {
	if now.Before(was.Until) || now.Sub(was.At) < sameMoment {
		return was
	}
	n := was.Failures + 1
	if now.Sub(was.At) > fairAfter {
		n = 1
	}
	next := state.ZoneHealth{Kind: f.Kind, Reason: f.Text, Failures: n, At: now, Until: now.Add(holdOff(f.Kind, n))}
	if n > 1 {
		next.Successes = was.Successes
	}
	return next
}

// Folded returns doc with what came of an action, nil for success. doc itself is
// returned where nothing is to be recorded.
func Folded(doc *state.Document, a plan.Action, f *Failure, now time.Time) *state.Document {
	name := a.Slice.Name
	cur := doc.Slices[name]
	switch {
	case cur == nil, a.Verb == plan.Assign, a.Verb == plan.ForgetSlice:
		return doc
	case f == nil && cur.Failed == "" && cur.RetryAt.IsZero():
		return doc
	}
	next := *cur
	next.Failed, next.Error, next.RetryAt, next.OverQuota = "", "", time.Time{}, false
	// Nothing else changes, and documents are large: the rest is shared.
	folded := *doc
	folded.Slices, folded.ZoneHealth = maps.Clone(doc.Slices), maps.Clone(doc.ZoneHealth)
	doc = &folded
	doc.Slices[name] = &next
	if f == nil {
		next.Tries = 0
		return doc
	}
	if f.Kind != schema.ErrorRate { // its turn comes
		next.Tries++
	}
	next.Failed, next.Error = cmp.Or(f.Kind, schema.ErrorUnavailable), f.Text
	next.OverQuota = f.Kind == schema.ErrorQuota
	next.RetryAt = now.Add(max(f.After, retryDelay(f, next.Tries)))
	if place, ok := counts(&cur.Spec, f.Kind); ok && a.Verb == plan.CreateSlice {
		if doc.ZoneHealth == nil {
			doc.ZoneHealth = map[string]state.ZoneHealth{}
		}
		said := *f
		said.Text = cmp.Or(f.Brief, f.Text)
		doc.ZoneHealth[place] = worsened(doc.ZoneHealth[place], said, now)
		next.RetryAt = Later(next.RetryAt, doc.ZoneHealth[place].Until)
	}
	return doc
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// retryDelay is how long to leave a slice alone after a failed call. What can
// never work is still tried now and then, since people may fix the cause.
func retryDelay(f *Failure, tries int) time.Duration {
	switch f.Kind {
	case schema.ErrorRate:
		if f.After > 0 {
			return f.After
		}
	case schema.ErrorInvalid, schema.ErrorPermission, schema.ErrorConflict:
		return max(10*time.Second, plan.Backoff(tries))
	case schema.ErrorQuota:
		return max(time.Minute, plan.Backoff(tries))
	case schema.ErrorCapacity, schema.ErrorReservation, schema.ErrorPreempted, schema.ErrorUnavailable:
	}
	return plan.Backoff(max(tries, 1))
}

// Blame counts the end of a slice against its place, if it was lost early or its
// provider could not bring it up.
func (d *ZoneHealth) Blame(s *state.Slice, cause schema.ErrorKind, why string) {
	if cause == "" || cause == schema.ErrorUnavailable {
		cause = schema.ErrorPreempted
	}
	young := !s.PendingSince.IsZero() && d.Now.Sub(s.PendingSince) < EarlyLoss
	if cause != schema.ErrorPreempted || young {
		d.Worsen(&s.Spec, cause, why)
	}
}

// Worsen counts a failure against the place that it speaks of.
func (d *ZoneHealth) Worsen(spec *schema.SliceSpec, kind schema.ErrorKind, why string) {
	place, ok := counts(spec, kind)
	if !ok {
		return
	}
	was := d.Next.ZoneHealth[place]
	is := worsened(was, Failure{Kind: kind, Text: why}, d.Now)
	// One that dies among many that live says little of their place: it counts,
	// and the place stays open.
	if is != was && kind == schema.ErrorPreempted && d.living(place)+is.Successes >= fairShare*is.Failures {
		is.Until, is.Succeeded = d.Now, true
	}
	if is != was {
		d.SetZoneHealth(place, &is)
	}
}

// living counts the slices at a place that are up.
func (d *ZoneHealth) living(place string) int {
	n := 0
	if d.Rest != nil {
		n = d.Rest.Living[place]
	}
	for name, s := range d.Next.Slices {
		st, listed := d.Listed[name]
		if listed && st.Phase != schema.SliceDead && st.Phase != schema.SliceDeleting && s.Terminating.IsZero() && !s.UpAt.IsZero() && plan.StockPlace(&s.Spec) == place {
			n++
		}
	}
	return n
}

// SetZoneHealth records the health of a place, nil for a healthy one.
func (d *ZoneHealth) SetZoneHealth(place string, w *state.ZoneHealth) {
	next := d.Mutable()
	next.ZoneHealth = maps.Clone(next.ZoneHealth) // what others hold stays as it is
	if w == nil {
		delete(next.ZoneHealth, place)
		return
	}
	if next.ZoneHealth == nil {
		next.ZoneHealth = map[string]state.ZoneHealth{}
	}
	next.ZoneHealth[place] = *w
}

// Cleared notes that capacity was had where a slice is.
func (d *ZoneHealth) Cleared(spec *schema.SliceSpec) {
	for _, place := range [2]string{plan.StockPlace(spec), QuotaPlace(spec)} {
		w, bad := d.Next.ZoneHealth[place]
		if !bad {
			continue
		}
		// Where slices come up and then die, coming up is little news.
		if w.Succeeded, w.Successes = true, w.Successes+1; w.Kind == schema.ErrorPreempted && w.Successes < fairShare*w.Failures {
			d.SetZoneHealth(place, &w)
		} else {
			d.SetZoneHealth(place, nil)
		}
	}
}

// ForgetZoneHealth removes records of places that took slices again or were not asked for long.
func (d *ZoneHealth) ForgetZoneHealth() {
	for place, w := range d.Doc.ZoneHealth {
		if d.Now.Sub(w.Until) > forgetAfter {
			d.SetZoneHealth(place, nil)
		}
	}
}

// Shut says why no slice is to be asked for at a place now, nothing if one may be.
func (d *ZoneHealth) Shut(spec *schema.SliceSpec) plan.Reason {
	if spec.Zone == "" {
		return plan.Reason{}
	}
	if d.Obs.Inventories[spec.Provider].Unlisted[spec.Zone] != "" && !d.ReadDirectly[spec.Name] {
		return d.CannotAsk(spec)
	}
	for _, place := range [2]string{QuotaPlace(spec), plan.StockPlace(spec)} {
		w, bad := d.Next.ZoneHealth[place]
		if bad && d.Now.Before(w.Until) {
			return plan.Reason{Kind: plan.WaitKindOf(w.Kind), Text: fmt.Sprintf("%s: %s: %s", spec.Zone, InWords(w.Kind), w.Reason), Until: w.Until}
		}
		if bad && !w.Succeeded && !waitsInTheCloud(spec) && d.trying(place) >= ProbeLimit {
			return plan.Underway(fmt.Sprintf("%s: others try it first, after: %s", spec.Zone, w.Reason))
		}
	}
	return plan.Reason{}
}

// trying counts the slices that have been asked for at a place and are not up.
func (d *ZoneHealth) trying(place string) int {
	if d.Tried == nil {
		d.Tried = map[string]int{}
		for _, s := range d.Next.Slices {
			if d.isTried(s) {
				d.Tried[plan.StockPlace(&s.Spec)]++
				d.Tried[QuotaPlace(&s.Spec)]++
			}
		}
	}
	return d.Tried[place]
}

// isTried reports whether a slice was asked for and may yet turn out not to be had.
func (d *ZoneHealth) isTried(s *state.Slice) bool {
	if s.Spec.Zone == "" || !s.Terminating.IsZero() || s.Failed != "" || s.PendingSince.IsZero() || !s.UpAt.IsZero() {
		return false
	}
	st, listed := d.Listed[s.Spec.Name]
	return !listed || st.Phase == schema.SliceCreating && d.Now.Sub(s.PendingSince) < plan.BootBudget(&s.Spec)
}

// IsOverdue reports whether a slice in a zone was accepted and has not been listed
// for as long as its hosts may take.
func (d *ZoneHealth) IsOverdue(s *state.Slice) bool {
	if s.Spec.Zone == "" || s.Failed != "" || s.PendingSince.IsZero() || waitsInTheCloud(&s.Spec) {
		return false
	}
	deadline := s.PendingSince.Add(plan.BootBudget(&s.Spec))
	d.WakeAt(deadline)
	return !d.Now.Before(deadline)
}

// GiveUp takes what has not come for refused. Should it come yet, it is like any other.
func (d *ZoneHealth) GiveUp(s *state.Slice) *state.Slice {
	const why = "it was accepted and does not come"
	d.Worsen(&s.Spec, schema.ErrorCapacity, why)
	e := d.EditSlice(s.Spec.Name)
	e.Failed, e.Error, e.Tries = schema.ErrorCapacity, why, e.Tries+1
	e.RetryAt = Later(d.Now.Add(plan.Backoff(e.Tries)), d.Next.ZoneHealth[plan.StockPlace(&s.Spec)].Until)
	return e
}

// waitsInTheCloud reports whether a slice waits there for capacity rather than
// being refused.
func waitsInTheCloud(spec *schema.SliceSpec) bool {
	switch spec.Cloud.Provisioning {
	case schema.ProvisioningQueued, schema.ProvisioningFlexStart:
		return true
	case schema.ProvisioningReserved:
	}
	return false
}

// InWords is what people call a failure.
func InWords(kind schema.ErrorKind) string {
	switch kind {
	case schema.ErrorCapacity:
		return "stockout"
	case schema.ErrorQuota:
		return "quota"
	case schema.ErrorReservation:
		return "reservation used up"
	case schema.ErrorPreempted:
		return "slices die young there"
	case schema.ErrorRate:
		return "too many calls"
	case schema.ErrorConflict:
		return "conflict"
	case schema.ErrorInvalid:
		return "cannot work"
	case schema.ErrorPermission:
		return "not allowed"
	case schema.ErrorUnavailable:
	}
	return "no answer"
}
