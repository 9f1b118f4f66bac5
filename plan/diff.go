package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Diff compares desired with doc and obs at the time now and returns what
// follows. doc is not changed; its lineage must be set.
func Diff(desired *schema.Desired, doc *state.Document, obs *Observed, now time.Time) *Plan {
	d := newDiffer(Wanted(desired, doc, now), doc, obs, now)
	d.whole()
	return d.plan
}

// whole looks at everything. [Planner] has a shorter way to the same plan.
func (d *differ) whole() {
	d.plan.Changes = make([]Change, 0, len(d.desired.Jobs)+len(d.desired.Groups)+8)
	d.findDrift()
	d.guard()
	d.declarations()
	for i := range d.desired.Jobs {
		d.advance(&d.desired.Jobs[i])
	}
	d.kin()
	d.removals()
	d.findWarm()
	d.pools()
	d.stage()
	inOrder(d.idle)
	d.place(d.idle)
	d.start(d.idle)
	d.rest()
	d.rewrite()
	d.orphans()
	d.attend()
	d.capacity(d.demand())
	d.conclude()
}

// differ is the work of one Diff. next starts as the given document and is
// cloned before the first change.
type differ struct {
	desired *schema.Desired
	doc     *state.Document
	next    *state.Document
	obs     *Observed
	now     time.Time
	stack   string
	plan    *Plan

	slices     map[string]*schema.SliceStatus    // every slice of every inventory that is the stack's
	disowned   []*schema.SliceStatus             // those it has let go of
	made       map[string]schema.SliceSpec       // as providers have them, where the owner is another now
	verbs      map[schema.Address]Verb           // of jobs to be restarted or replaced
	recorded   int                               // how many of the desired jobs the state knew
	idle       []*schema.Job                     // those that neither run nor have ended
	prepared   map[schema.Address]bool           // all hosts up, only the start is missing
	missing    map[schema.Address]schema.Address // by group: a member without capacity
	leaving    map[schema.Address]bool           // jobs that are declared no more
	clearing   map[schema.Address]bool           // owners of slices that nobody wants
	withdrawn  []schema.Address                  // recorded declarations that are made no more
	dissolving bool                              // one of them is a reservation that has slices
	acting     map[string]int                    // index of the action on a slice
	holders    map[string]schema.Address         // of slices of reservations, by name
	waits      []waiting
	content    []schema.Address          // jobs that wait no more, unless waits names them
	shown      map[schema.Address]Change // instead of what is done: they are refused
	tried      map[string]int            // see trying
	hush       *bool                     // see isHush
	doubted    map[string]DoubtKind      // slices that may be there, whatever the list says; see doubtReadings
	// readDirectly are slices of which a direct read says whether they are there.
	readDirectly map[string]bool
	zones        map[schema.Address]string // chosen for what is being placed
	staging      []staging                 // jobs to be replaced that run on until what takes over is up
	held         []*schema.Job             // jobs without capacity that wait for what they depend on

	turn     *unit            // whose turn it is to be placed
	keeps    map[bound]*kept  // what is held back, see keep
	goes     map[bound]load   // see going
	stays    map[bound]load   // see enduring
	yielding []schema.Address // jobs that make room for others
	hopeless []hopeless       // see makeRoom
	idles    map[schema.ProviderName]load
	byID     map[string]schema.Address // of jobs, see launcher

	twin         *twin            // where mutable gets its copy from; nil: a clone
	editedJobs   []schema.Address // entries of next that may not be those of doc
	editedSlices []string         // and of slices

	guests        map[string][]string         // recorded guests by the slice on which they live, sorted
	unknownGuests []schema.SliceSpec          // that hosts were told of and nobody recorded
	hosting       map[string]reason           // see bringUpHost
	chosenRooms   map[schema.Address][]placed // see fits
	grownRooms    bool                        // some rooms are of slices that are not there yet
	shared        map[string]bool             // see isShared

	// Made when first asked for, see the functions of the same names.
	families     map[schema.Address][]*schema.Job
	newest       *newestRuns
	met          map[dependency]reason
	lodged       *lodgings
	late         map[schema.Address]*schema.Job // by group: a member that is overdue, nil: none is; see isOverdueStart
	pooled       map[string]*pool
	warm         map[warmKind][]string     // slices that idle for the next job of their kind
	taking       map[string]schema.Address // of those: by whom they are chosen, by name
	coming       map[schema.ProviderName]Amount
	spent        map[schema.ProviderName]Amount
	accelerators map[string]schema.Accelerator
	shares       *accounts
	victims      []*victim
}

func newDiffer(desired *schema.Desired, doc *state.Document, obs *Observed, now time.Time) *differ {
	d := &differ{
		desired: desired, doc: doc, next: doc, obs: obs, now: now,
		stack:    doc.Stack(),
		plan:     &Plan{},
		verbs:    map[schema.Address]Verb{},
		prepared: map[schema.Address]bool{},
		missing:  map[schema.Address]schema.Address{},
		acting:   map[string]int{},
	}
	listed := 0
	for _, inv := range obs.Inventories {
		listed += len(inv.Slices)
	}
	d.slices = make(map[string]*schema.SliceStatus, listed)
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			// What does not carry this stack's mark is not there for us.
			if st := &inv.Slices[i]; st.Spec.Stack == d.stack {
				d.takeIn(st)
			}
		}
	}
	d.doubtReadings()
	d.takeInGuests()
	d.recordHolders()
	return d
}

// family returns the desired jobs that an address without an instance stands
// for: the instances of a job, or the jobs of a group.
func (d *differ) family(of schema.Address) []*schema.Job {
	if d.families == nil {
		d.families = map[schema.Address][]*schema.Job{}
		for i := range d.desired.Jobs {
			job := &d.desired.Jobs[i]
			base := job.Addr.Base()
			d.families[base] = append(d.families[base], job)
			if job.Addr.Group != "" {
				group := job.Addr.GroupAddress()
				d.families[group] = append(d.families[group], job)
			}
		}
	}
	return d.families[of]
}

// mutable returns next, cloned from the given document at the first call.
func (d *differ) mutable() *state.Document {
	switch {
	case d.next != d.doc:
	case d.twin != nil:
		d.next = d.twin.copyOf(d.doc)
	default:
		d.next = d.doc.Clone()
	}
	return d.next
}

// edit returns a copy of a job that may be changed, and records it in next.
func (d *differ) edit(addr schema.Address) *state.Job {
	next := d.mutable()
	cur := next.Jobs[addr]
	if cur != d.doc.Jobs[addr] {
		return cur // copied before
	}
	j := *cur
	j.Attempts = slices.Clone(cur.Attempts)
	if last := j.Last(); last != nil {
		last.Tasks = slices.Clone(last.Tasks)
	}
	next.Jobs[addr] = &j
	d.editedJobs = append(d.editedJobs, addr)
	return &j
}

// known reports whether a slice was read directly, or else would be listed if it were
// there and no list speaks against it without a confirmation: only then does one that is
// not listed not exist.
func (d *differ) known(spec *schema.SliceSpec) bool {
	if host := d.next.Slices[spec.On]; host != nil {
		spec = &host.Spec
	}
	if d.readDirectly[spec.Name] {
		return true
	}
	if d.isUnconfirmed(spec) {
		return false
	}
	return d.listedIn(spec.Provider, spec.Zone)
}

// act adds an action, at most one for a slice: a deletion takes the place of
// any other, else the first one stands and the next Diff asks for the rest.
func (d *differ) act(a Action) {
	i, acting := d.acting[a.Slice.Name]
	switch {
	case !acting:
		d.acting[a.Slice.Name] = len(d.plan.Actions)
		d.plan.Actions = append(d.plan.Actions, a)
	case a.Verb == DeleteSlice:
		d.plan.Actions[i] = a
	}
}

// wakeAt asks to be called again at t, when time alone changes something.
func (d *differ) wakeAt(t time.Time) {
	if t.After(d.now) && (d.plan.Wake.IsZero() || t.Before(d.plan.Wake)) {
		d.plan.Wake = t
	}
}

func (d *differ) drift(addr schema.Address, slice, found, then string) {
	d.plan.Drift = append(d.plan.Drift, Drift{Addr: addr, Slice: slice, Found: found, Then: then})
}

// declarations settles what has no processes of its own: namespaces, groups
// and the record of reservations, whose slices are pools' business.
func (d *differ) declarations() {
	declared := make(map[schema.Address]bool, len(d.doc.Resources))
	for i := range d.desired.Namespaces {
		n := &d.desired.Namespaces[i]
		declared[n.Addr] = true
		d.declare(n.Addr, n, state.Resource{Namespace: n})
	}
	for i := range d.desired.Reservations {
		r := &d.desired.Reservations[i]
		declared[r.Addr] = true
		d.declare(r.Addr, r, state.Resource{Reservation: r})
	}
	for i := range d.desired.Groups {
		g := &d.desired.Groups[i]
		declared[g.Addr] = true
		d.declare(g.Addr, g, state.Resource{Group: g})
	}
	for _, addr := range slices.SortedFunc(maps.Keys(d.doc.Resources), schema.Address.Compare) {
		if declared[addr] {
			continue
		}
		d.withdrawn = append(d.withdrawn, addr)
		if d.doc.Resources[addr].Launch == nil {
			d.plan.Changes = append(d.plan.Changes, removal(addr, d.doc.Resources[addr]))
		}
	}
}

// removal is the change of a declaration that is made no more.
func removal(addr schema.Address, r state.Resource) Change {
	return Change{Addr: addr, Verb: VerbDelete, Attrs: changedAttrs(resourceAttrs(r), nil)}
}

func (d *differ) declare(addr schema.Address, spec any, r state.Resource) {
	cur, exists := d.doc.Resources[addr]
	if exists && sameResource(cur, r) {
		d.plan.Changes = append(d.plan.Changes, Change{Addr: addr, Verb: VerbNone})
		if r.Reservation != nil && !equalLifecycles(&r.Reservation.Lifecycle, &cur.Reservation.Lifecycle) {
			r.Since, r.Launch = cur.Since, cur.Launch
			d.mutable().Resources[addr] = recordOf(spec, r)
		}
		return
	}
	r.Since = d.now
	change := Change{Addr: addr, Verb: VerbCreate, Attrs: changedAttrs(nil, resourceAttrs(r))}
	if exists {
		change = resourceChange(addr, cur, r)
	}
	d.plan.Changes = append(d.plan.Changes, change)
	d.mutable().Resources[addr] = recordOf(spec, r)
}

// recordOf is a declaration as it is recorded.
func recordOf(spec any, r state.Resource) state.Resource {
	digest, err := schema.DigestOf(spec)
	if err != nil {
		digest = "" // declarations hold no secrets and encode; the specs are compared anyway
	}
	r.Digest = digest
	return r
}

// resourceChange compares two declarations of one address.
func resourceChange(addr schema.Address, cur, r state.Resource) Change {
	change := Change{Addr: addr, Attrs: changedAttrs(resourceAttrs(cur), resourceAttrs(r))}
	change.Verb = strongest(change.Attrs)
	switch change.Verb {
	case VerbRestart: // nothing of its own runs; its jobs say what they do
		change.Verb = VerbUpdate
	case VerbReplace:
		change.ActionReason = ReplaceBecauseUpdate
	case VerbNone, VerbCreate, VerbUpdate, VerbDelete:
	}
	change.explain(cur.Causes)
	return change
}

// conclude puts the plan in order and records why jobs wait.
func (d *differ) conclude() {
	byAddr := func(a, b Change) int { return a.Addr.Compare(b.Addr) }
	if !slices.IsSortedFunc(d.plan.Changes, byAddr) {
		slices.SortStableFunc(d.plan.Changes, byAddr)
	}
	d.showRefused()
	d.concludeWaits()
	d.stamp()
	d.plan.Next = d.next
}
