package capacity

import (
	"cmp"
	"strconv"

	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// RecordAs is a job's record as it will be under another spec, as far as accounts
// look at it.
func RecordAs(want *schema.Job, j *state.Job) *state.Job {
	return &state.Job{Spec: want, Launch: j.Launch}
}

// Recount counts a job in another way than before.
func (s *Accounts) Recount(addr schema.Address, is Holding) { s.recount(addr, s.Held(addr), is) }

func (s *Accounts) recount(addr schema.Address, was, is Holding) {
	s.count(&was, -1)
	s.count(&is, 1)
	s.note(addr, is)
}

// note keeps what a job was counted with. Most jobs are counted with the same.
func (s *Accounts) note(addr schema.Address, is Holding) {
	kept := s.kinds[is]
	if kept == nil {
		kept = &is
		s.kinds[is] = kept
	}
	s.held[addr] = kept
}

// Held is what a job was counted with.
func (s *Accounts) Held(addr schema.Address) Holding {
	if h := s.held[addr]; h != nil {
		return *h
	}
	return s.recorded(addr)
}

// count adds n times what a job was counted with, once to each account.
func (s *Accounts) count(h *Holding, n int) {
	from := s.Of(h.Space, h.User)
	for _, a := range from {
		a.add(h.Load, h.Band, n)
	}
	if !h.Moves && h.Staged == (snapshot.Load{}) {
		return
	}
	for i, a := range s.Of(h.ToSpace, h.ToUser) {
		a.add(h.Staged, h.Band, n)
		if h.Moves && a != from[i] {
			a.add(h.Load, h.Band, n)
		}
	}
}

func (a *Account) add(l snapshot.Load, band, n int) {
	a.Used = a.Used.Plus(l, n)
	a.banded[band] += n * l.Chips
}

// BandCount is the number of bands.
const BandCount = 3

// BandOrder numbers the bands, the one that gets capacity first being 0.
func BandOrder(b schema.Band) int {
	switch b {
	case schema.BandProduction:
		return 0
	case schema.BandBatch:
		return 2
	case schema.BandInteractive:
	}
	return 1
}

// Account is what a namespace, or a user of one, may have and has.
type Account struct {
	Name   string        // for people
	Max    snapshot.Load // its zero parts bound nothing
	Budget int           // chips; 0: none
	weight float64       // above 0
	Used   snapshot.Load
	banded [BandCount]int // chips held, by the band that their jobs declare
	users  map[string]*Account
}

// Share is how much of all that there is an account uses, by its weight.
func (a *Account) Share(all snapshot.Load) float64 {
	chips := float64(a.Used.Chips) / float64(max(all.Chips, 1))
	cores := float64(a.Used.Milli) / float64(max(all.Milli, 1))
	return max(chips, cores) / a.weight
}

// OverBudget reports whether chips more for a job of a band would be beyond the
// budget. What lower bands hold does not count: it yields first.
func (a *Account) OverBudget(band, chips int) bool {
	if a.Budget == 0 || chips == 0 {
		return false
	}
	for _, held := range a.banded[:band+1] {
		chips += held
	}
	return chips > a.Budget
}

// IsOverBudget reports whether more chips are held than the budget has, so that some of
// the jobs that hold them count as batch.
func (a *Account) IsOverBudget() bool { return a.Budget > 0 && a.Used.Chips > a.Budget }

// Accounts are those of all namespaces and what they share.
type Accounts struct {
	All      snapshot.Load // that there is to share
	spaces   map[string]*Account
	declared map[string]*schema.Namespace
	kinds    map[Holding]*Holding
	held     map[schema.Address]*Holding  // of kinds: what was counted for a job whose record may differ from the given document's
	recorded func(schema.Address) Holding // what was counted for others
}

// Holding is what a job was counted with.
type Holding struct {
	Load  snapshot.Load
	Band  int
	Space string
	User  string

	// What it is to have is counted where it is to be.
	ToSpace, ToUser string
	Staged          snapshot.Load // of the slices that wait to take over
	Moves           bool          // there with what it has, see outgrows
}

// Accounts sums up who holds what.
func (d *Pools) Accounts() *Accounts {
	if d.shares != nil {
		return d.shares
	}
	d.shares = &Accounts{
		All: d.shareable(), spaces: map[string]*Account{}, held: make(map[schema.Address]*Holding, len(d.EditedJobs)), kinds: map[Holding]*Holding{},
		declared: make(map[string]*schema.Namespace, len(d.Desired.Namespaces)), recorded: func(addr schema.Address) Holding { return holdingOf(d, d.Doc.Jobs[addr], d.Doc) },
	}
	for i := range d.Desired.Namespaces {
		n := &d.Desired.Namespaces[i]
		d.shares.declared[n.Addr.Scoped()] = n
	}
	if d.Rest != nil {
		for of, held := range d.Rest.Holders {
			d.shares.count(&Holding{Load: held, Band: of.Band, Space: of.Space, User: of.User}, 1)
		}
	}
	holders := 0
	for addr, j := range d.Next.Jobs {
		if len(j.Slices)+len(j.Staged) == 0 {
			continue
		}
		holders++
		if !d.Rest.Counts(addr) {
			is := d.holding(d.Next, j)
			d.shares.count(&is, 1)
		}
	}
	if holders == 0 && len(d.Doc.Jobs) == 0 { // a stack that is new: no job was counted with anything
		return d.shares
	}
	for _, addr := range d.EditedJobs {
		if is := holdingOf(d, d.JobAt(addr), d.Next); is != (Holding{}) || d.Doc.Jobs[addr] != nil { // else it was counted with nothing
			d.shares.note(addr, is)
		}
	}
	return d.shares
}

// holdingOf is what a job of a document is counted with, nothing where it has no slices.
func holdingOf(d *Pools, j *state.Job, doc *state.Document) Holding {
	if j == nil || len(j.Slices)+len(j.Staged) == 0 {
		return Holding{}
	}
	return d.holding(doc, j)
}

// HolderOf is what a job that runs counts as, and what each of its slices takes.
func HolderOf(d *Pools, j *state.Job) (snapshot.Holder, snapshot.Load) {
	r := &j.Spec.Resources
	each := d.LoadOf(j.Spec.As(snapshot.AcceleratorIn(d.Next, j.Spec, j)))
	return snapshot.Holder{
		Space: SpaceOf(d.Accounts(), j), User: j.Spec.User, Band: BandOrder(j.Spec.Band),
		Provider: cmp.Or(r.Provider, schema.ProviderLocal), Reservation: r.Reservation, Endures: Endures(j),
	}, each
}

// AnyOverBudget reports whether a namespace or user holds more chips than its budget has.
func (s *Accounts) AnyOverBudget() bool {
	for _, space := range s.spaces {
		if space.IsOverBudget() {
			return true
		}
		for _, user := range space.users {
			if user.IsOverBudget() {
				return true
			}
		}
	}
	return false
}

// Moving are the jobs that count in two accounts.
func (d *Pools) Moving() map[schema.Address]Holding {
	var moving map[schema.Address]Holding
	if d.shares == nil {
		return nil
	}
	for addr, is := range d.shares.held {
		if is.Moves {
			if moving == nil {
				moving = map[schema.Address]Holding{}
			}
			moving[addr] = *is
		}
	}
	return moving
}

// CountMoving counts jobs where they are to be, too.
func (d *Pools) CountMoving(moving map[schema.Address]Holding) {
	for addr, to := range moving {
		s := d.Accounts()
		is := s.Held(addr)
		is.Moves, is.ToSpace, is.ToUser = true, to.ToSpace, to.ToUser
		s.Recount(addr, is)
	}
}

// shareable is the capacity that is known: limits of providers where they are
// declared, else what the stack has.
func (d *Pools) shareable() snapshot.Load {
	var all, limit snapshot.Load
	if d.Rest != nil {
		all = d.Rest.Load
	}
	for _, s := range d.Next.Slices {
		if s.Spec.On == "" { // of a packed task the host counts
			all = all.Plus(d.SliceLoad(&s.Spec), 1)
		}
	}
	for i := range d.Desired.Providers {
		limit.Milli += snapshot.Milli(d.Desired.Providers[i].CPU)
	}
	all.Milli = cmp.Or(limit.Milli, all.Milli)
	return all
}

// Tally counts what a job holds now in place of what was counted before.
func (d *Pools) Tally(addr schema.Address) {
	if d.shares == nil {
		return
	}
	was := d.shares.Held(addr)
	is := Holding{}
	if j := d.JobAt(addr); j != nil {
		is = d.holding(d.Next, j)
	}
	if was.Moves && is != (Holding{}) && (is.Space != was.ToSpace || is.User != was.ToUser) {
		is.Moves, is.ToSpace, is.ToUser = true, was.ToSpace, was.ToUser
	}
	if was != is {
		d.shares.recount(addr, was, is)
	}
}

// holding is what a job is counted with as a document records it.
func (d *Pools) holding(doc *state.Document, j *state.Job) Holding {
	has := j.Spec.As(snapshot.AcceleratorIn(doc, j.Spec, j))
	is := Holding{Load: snapshot.Load{}.Plus(d.LoadOf(has), len(j.Slices)), Band: BandOrder(j.Spec.Band), Space: SpaceOf(d.shares, j), User: j.Spec.User}
	if len(j.Staged) > 0 {
		d.tallyStaged(&is, doc, j)
	}
	return is
}

// tallyStaged counts the slices that wait to take over, which are as the job is to
// be, not as it is.
func (d *Pools) tallyStaged(is *Holding, doc *state.Document, j *state.Job) {
	want := j.Spec
	for _, of := range d.Family(j.Spec.Addr.Base()) {
		if of.Addr == j.Spec.Addr {
			want = of
		}
	}
	staged := want
	if s := doc.Slices[j.Staged[0]]; s != nil && want.Resources.IsAlternative(s.Spec.Accelerator()) {
		staged = want.As(s.Spec.Accelerator())
	}
	is.Staged = snapshot.Load{}.Plus(d.LoadOf(staged), len(j.Staged))
	is.ToSpace, is.ToUser = SpaceOf(d.shares, RecordAs(want, j)), want.User
}

// SpaceOf names the account of a job's namespace. Jobs that name none have one
// of their own name each, for their actors: these share one account, "", so that
// priorities mean something among them.
func SpaceOf(s *Accounts, j *state.Job) string {
	if s.declared[j.Spec.Namespace] == nil && j.Launch == nil {
		return ""
	}
	return j.Spec.Namespace
}

// Of returns the accounts of a namespace and of a user in it.
func (s *Accounts) Of(space, user string) [2]*Account {
	a := s.spaces[space]
	if a == nil {
		a = &Account{Name: "jobs without a namespace", weight: 1, users: map[string]*Account{}}
		if space != "" {
			a.Name = schema.ScopedAddress(schema.KindNamespace, space).String()
		}
		if n := s.declared[space]; n != nil {
			a.bound(&schema.UserShare{MaxChips: n.MaxChips, MaxCPU: n.MaxCPU, Budget: n.Budget, Weight: n.Weight})
		}
		s.spaces[space] = a
	}
	u := a.users[user]
	if u == nil {
		u = &Account{Name: "user " + strconv.Quote(user) + " of " + a.Name, weight: 1}
		if n := s.declared[space]; n != nil && user != "" {
			for i := range n.Users {
				if n.Users[i].Name == user {
					u.bound(&n.Users[i])
				}
			}
		}
		a.users[user] = u
	}
	return [2]*Account{a, u}
}

func (a *Account) bound(by *schema.UserShare) {
	a.Max, a.Budget = snapshot.Load{Chips: by.MaxChips, Milli: snapshot.Milli(by.MaxCPU)}, by.Budget
	a.weight = cmp.Or(by.Weight, 1)
}
