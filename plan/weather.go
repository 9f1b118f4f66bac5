package plan

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Weather is what is known of the places where capacity is asked for: a zone for
// one TPU type and tier, or for quotas the whole region and generation. A place
// where it was refused, or where slices die young, is left alone for a while, which
// doubles with every failure in a row; meanwhile others are tried in the declared
// order. When the time is over, a few slices try it before all do.

const (
	// youngDeath is the age below which the end of a slice counts against its place.
	youngDeath = 30 * time.Minute
	// sameMoment is the time within which failures of a place have one cause.
	sameMoment = 15 * time.Second
	// fairAfter is how long after its last failure a place counts as a new one.
	fairAfter = time.Hour
	// forgetAfter is when nothing is remembered of it any more.
	forgetAfter = 24 * time.Hour
	// fairShare is how many slices must come up for each that died young for
	// the place to count as a good one.
	fairShare = 4
	// vanguard is how many slices at a time try a place that has failed.
	vanguard = 4
)

// Failure is what came of an action that did not work.
type Failure struct {
	Kind  schema.ErrorKind
	Text  string
	Brief string        // the same without what was asked for; "": Text
	After time.Duration // how long to leave it alone, where that is known
}

// stockPlace is where a slice's capacity comes from, "" where there are no zones.
func stockPlace(s *schema.SliceSpec) string {
	if s.Zone == "" {
		return ""
	}
	return s.Zone + "/" + cmp.Or(s.TPU, s.MachineType, "machines") + "/" + tierOf(s)
}

// quotaPlace is where the quota for it is counted.
func quotaPlace(s *schema.SliceSpec) string {
	if s.Zone == "" {
		return ""
	}
	generation, _, _ := strings.Cut(cmp.Or(s.TPU, s.MachineType, "machines"), "-")
	return schema.RegionOf(s.Zone) + "/" + generation + "/" + tierOf(s)
}

func tierOf(s *schema.SliceSpec) string {
	tier := "on-demand"
	if s.Preemptible {
		tier = "spot"
	}
	if s.Cloud.Provisioning != "" {
		tier += "-" + string(s.Cloud.Provisioning)
	}
	return tier
}

// counts reports whether a failure speaks of its place, and of which one.
func counts(spec *schema.SliceSpec, kind schema.ErrorKind) (place string, ok bool) {
	switch kind {
	case schema.ErrorCapacity, schema.ErrorReservation, schema.ErrorPreempted:
		place = stockPlace(spec)
	case schema.ErrorQuota:
		place = quotaPlace(spec)
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

// worsened is the weather of a place after another failure. Those that were under
// way when the place was given up say nothing new.
func worsened(was state.Weather, f Failure, now time.Time) state.Weather {
	if now.Before(was.Until) || now.Sub(was.At) < sameMoment {
		return was
	}
	n := was.Failures + 1
	if now.Sub(was.At) > fairAfter {
		n = 1
	}
	next := state.Weather{Kind: f.Kind, Reason: f.Text, Failures: n, At: now, Until: now.Add(holdOff(f.Kind, n))}
	if n > 1 {
		next.Births = was.Births
	}
	return next
}

// Folded returns doc with what came of an action, nil for success. doc itself is
// returned where nothing is to be recorded.
func Folded(doc *state.Document, a Action, f *Failure, now time.Time) *state.Document {
	name := a.Slice.Name
	cur := doc.Slices[name]
	switch {
	case cur == nil, a.Verb == Assign, a.Verb == ForgetSlice:
		return doc
	case f == nil && cur.Failed == "" && cur.RetryAt.IsZero():
		return doc
	}
	next := *cur
	next.Failed, next.Error, next.RetryAt, next.OverQuota = "", "", time.Time{}, false
	// Nothing else changes, and documents are large: the rest is shared.
	folded := *doc
	folded.Slices, folded.Weather = maps.Clone(doc.Slices), maps.Clone(doc.Weather)
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
	if place, ok := counts(&cur.Spec, f.Kind); ok && a.Verb == CreateSlice {
		if doc.Weather == nil {
			doc.Weather = map[string]state.Weather{}
		}
		said := *f
		said.Text = cmp.Or(f.Brief, f.Text)
		doc.Weather[place] = worsened(doc.Weather[place], said, now)
		next.RetryAt = later(next.RetryAt, doc.Weather[place].Until)
	}
	return doc
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// retryDelay is how long to leave a slice alone after a failed call. What can
// never work is still tried now and then, since people mend things.
func retryDelay(f *Failure, tries int) time.Duration {
	switch f.Kind {
	case schema.ErrorRate:
		if f.After > 0 {
			return f.After
		}
	case schema.ErrorInvalid, schema.ErrorPermission, schema.ErrorConflict:
		return max(10*time.Second, Backoff(tries))
	case schema.ErrorQuota:
		return max(time.Minute, Backoff(tries))
	case schema.ErrorCapacity, schema.ErrorReservation, schema.ErrorPreempted, schema.ErrorUnavailable:
	}
	return Backoff(max(tries, 1))
}

// blame counts the end of a slice against its place, if it died young or its
// provider could not bring it up.
func (d *differ) blame(s *state.Slice, cause schema.ErrorKind, why string) {
	if cause == "" || cause == schema.ErrorUnavailable {
		cause = schema.ErrorPreempted
	}
	young := !s.AskedAt.IsZero() && d.now.Sub(s.AskedAt) < youngDeath
	if cause != schema.ErrorPreempted || young {
		d.worsen(&s.Spec, cause, why)
	}
}

// worsen counts a failure against the place that it speaks of.
func (d *differ) worsen(spec *schema.SliceSpec, kind schema.ErrorKind, why string) {
	place, ok := counts(spec, kind)
	if !ok {
		return
	}
	was := d.next.Weather[place]
	is := worsened(was, Failure{Kind: kind, Text: why}, d.now)
	// One that dies among many that live says little of their place: it counts,
	// and the place stays open.
	if is != was && kind == schema.ErrorPreempted && d.living(place)+is.Births >= fairShare*is.Failures {
		is.Until, is.Had = d.now, true
	}
	if is != was {
		d.setWeather(place, &is)
	}
}

// living counts the slices at a place that are up.
func (d *differ) living(place string) int {
	n := 0
	for name, s := range d.next.Slices {
		st, listed := d.slices[name]
		if listed && st.Phase != schema.SliceDead && st.Phase != schema.SliceDeleting && s.Terminating.IsZero() && !s.BornAt.IsZero() && stockPlace(&s.Spec) == place {
			n++
		}
	}
	return n
}

// setWeather records the weather of a place, nil for good weather.
func (d *differ) setWeather(place string, w *state.Weather) {
	next := d.mutable()
	next.Weather = maps.Clone(next.Weather) // what others hold stays as it is
	if w == nil {
		delete(next.Weather, place)
		return
	}
	if next.Weather == nil {
		next.Weather = map[string]state.Weather{}
	}
	next.Weather[place] = *w
}

// cleared notes that capacity was had where a slice is.
func (d *differ) cleared(spec *schema.SliceSpec) {
	for _, place := range [2]string{stockPlace(spec), quotaPlace(spec)} {
		w, bad := d.next.Weather[place]
		if !bad {
			continue
		}
		// Where slices come up and then die, coming up is little news.
		if w.Had, w.Births = true, w.Births+1; w.Kind == schema.ErrorPreempted && w.Births < fairShare*w.Failures {
			d.setWeather(place, &w)
		} else {
			d.setWeather(place, nil)
		}
	}
}

func (d *differ) forgetWeather() {
	for place, w := range d.doc.Weather {
		if d.now.Sub(w.Until) > forgetAfter {
			d.setWeather(place, nil)
		}
	}
}

// shut says why no slice is to be asked for at a place now, nothing if one may be.
func (d *differ) shut(spec *schema.SliceSpec) reason {
	if spec.Zone == "" {
		return reason{}
	}
	if d.obs.Inventories[spec.Provider].Unlisted[spec.Zone] != "" && !d.readDirectly[spec.Name] {
		return d.cannotAsk(spec)
	}
	for _, place := range [2]string{quotaPlace(spec), stockPlace(spec)} {
		w, bad := d.next.Weather[place]
		if bad && d.now.Before(w.Until) {
			return reason{kind: waitKindOf(w.Kind), text: fmt.Sprintf("%s: %s: %s", spec.Zone, inWords(w.Kind), w.Reason), until: w.Until}
		}
		if bad && !w.Had && !waitsInTheCloud(spec) && d.trying(place) >= vanguard {
			return underway(fmt.Sprintf("%s: others try it first, after: %s", spec.Zone, w.Reason))
		}
	}
	return reason{}
}

// trying counts the slices that have been asked for at a place and are not up.
func (d *differ) trying(place string) int {
	if d.tried == nil {
		d.tried = map[string]int{}
		for _, s := range d.next.Slices {
			if d.isTried(s) {
				d.tried[stockPlace(&s.Spec)]++
				d.tried[quotaPlace(&s.Spec)]++
			}
		}
	}
	return d.tried[place]
}

// isTried reports whether a slice was asked for and may yet turn out not to be had.
func (d *differ) isTried(s *state.Slice) bool {
	if s.Spec.Zone == "" || !s.Terminating.IsZero() || s.Failed != "" || s.AskedAt.IsZero() || !s.BornAt.IsZero() {
		return false
	}
	st, listed := d.slices[s.Spec.Name]
	return !listed || st.Phase == schema.SliceCreating && d.now.Sub(s.AskedAt) < bootBudget(&s.Spec)
}

// isOverdue reports whether a slice in a zone was accepted and has not been listed
// for as long as its hosts may take.
func (d *differ) isOverdue(s *state.Slice) bool {
	if s.Spec.Zone == "" || s.Failed != "" || s.AskedAt.IsZero() || waitsInTheCloud(&s.Spec) {
		return false
	}
	deadline := s.AskedAt.Add(bootBudget(&s.Spec))
	d.wakeAt(deadline)
	return !d.now.Before(deadline)
}

// giveUp takes what has not come for refused. Should it come yet, it is like any other.
func (d *differ) giveUp(s *state.Slice) *state.Slice {
	const why = "it was accepted and does not come"
	d.worsen(&s.Spec, schema.ErrorCapacity, why)
	e := d.editSlice(s.Spec.Name)
	e.Failed, e.Error, e.Tries = schema.ErrorCapacity, why, e.Tries+1
	e.RetryAt = later(d.now.Add(Backoff(e.Tries)), d.next.Weather[stockPlace(&s.Spec)].Until)
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

// inWords is what people call a failure.
func inWords(kind schema.ErrorKind) string {
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
