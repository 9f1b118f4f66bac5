package plan

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Who gets capacity first: production before interactive before batch; within a
// band the namespace that uses the least of what it is due, and in it the user of
// whom that is so; then priority, then who was there first, then the address
// (queue.go). What a namespace uses is its dominant share (Ghodsi et al., Dominant
// Resource Fairness, NSDI 2011): of all chips or of all cores, whichever is more,
// divided by its weight. It counts what its jobs hold, whether or not it is up,
// and rises while a Diff hands out (progressive filling).
//
// A namespace's max is never exceeded (budget.go). What is beyond its budget
// counts as batch. Who is first and finds no room may make some (victim.go).

// load is an amount of capacity in whole numbers, so that sums of it depend on
// no order.
type load struct {
	slices, chips int
	milli         int // thousandths of cores of hosts without TPUs
	memory        int // bytes
}

func (l load) plus(m load, n int) load {
	return load{slices: l.slices + n*m.slices, chips: l.chips + n*m.chips, milli: l.milli + n*m.milli, memory: l.memory + n*m.memory}
}

// exceeds reports whether need does not fit beside used into limit, whose zero
// parts bound nothing.
func (l load) exceeds(used, limit load) bool {
	over := func(need, used, limit int) bool { return limit > 0 && need > 0 && used+need > limit }
	return over(l.slices, used.slices, limit.slices) || over(l.chips, used.chips, limit.chips) ||
		over(l.milli, used.milli, limit.milli) || over(l.memory, used.memory, limit.memory)
}

func milli(cores float64) int { return int(math.Round(1000 * cores)) }

func loadOf(a Amount) load {
	return load{slices: a.Slices, chips: a.Chips, milli: milli(a.CPU), memory: int(a.Memory)}
}

// sliceLoad is what one slice takes; of a machine type, the cores that its name ends in.
func (d *differ) sliceLoad(spec *schema.SliceSpec) load {
	l := loadOf(d.amountOf(spec))
	if spec.TPU == "" && spec.CPU == 0 {
		if n, err := strconv.Atoi(spec.MachineType[strings.LastIndexByte(spec.MachineType, '-')+1:]); err == nil {
			l.milli = 1000 * n
		}
	}
	return l
}

// eachLoad is what each of a job's slices takes.
func (d *differ) eachLoad(j *schema.Job) load {
	r := &j.Resources
	return d.sliceLoad(&schema.SliceSpec{TPU: r.TPU, CPU: r.CPU, Memory: r.Memory, MachineType: r.MachineType})
}

// account is what a namespace, or a user of one, may have and has.
type account struct {
	name   string  // for people
	max    load    // its zero parts bound nothing
	budget int     // chips; 0: none
	weight float64 // above 0
	used   load
	banded [bandCount]int // chips held, by the band that their jobs declare
	users  map[string]*account
}

// share is how much of all that there is an account uses, by its weight.
func (a *account) share(all load) float64 {
	chips := float64(a.used.chips) / float64(max(all.chips, 1))
	cores := float64(a.used.milli) / float64(max(all.milli, 1))
	return max(chips, cores) / a.weight
}

// overBudget reports whether chips more for a job of a band would be beyond the
// budget. What lower bands hold does not count: it yields first.
func (a *account) overBudget(band, chips int) bool {
	if a.budget == 0 || chips == 0 {
		return false
	}
	for _, held := range a.banded[:band+1] {
		chips += held
	}
	return chips > a.budget
}

// accounts are those of all namespaces and what they share.
type accounts struct {
	all      load // that there is to share
	spaces   map[string]*account
	declared map[string]*schema.Namespace
	held     map[schema.Address]holding // what was counted for a job
}

// holding is what a job was counted with.
type holding struct {
	load  load
	band  int
	space string
	user  string

	// What it is to have is counted where it is to be.
	toSpace, toUser string
	staged          load // of the slices that wait to take over
	moves           bool // there with what it has, see outgrows
}

// accounts sums up who holds what.
func (d *differ) accounts() *accounts {
	if d.shares != nil {
		return d.shares
	}
	d.shares = &accounts{
		all: d.shareable(), spaces: map[string]*account{}, held: make(map[schema.Address]holding, len(d.next.Jobs)),
		declared: make(map[string]*schema.Namespace, len(d.desired.Namespaces)),
	}
	for i := range d.desired.Namespaces {
		n := &d.desired.Namespaces[i]
		d.shares.declared[n.Addr.Scoped()] = n
	}
	for addr, j := range d.next.Jobs {
		if len(j.Slices)+len(j.Staged) > 0 {
			d.tally(addr)
		}
	}
	return d.shares
}

// shareable is the capacity that is known: limits of providers where they are
// declared, else what the stack has.
func (d *differ) shareable() load {
	var all, limit load
	for _, s := range d.next.Slices {
		if s.Spec.On == "" { // a guest's host counts, not the guest
			all = all.plus(d.sliceLoad(&s.Spec), 1)
		}
	}
	for i := range d.desired.Providers {
		limit.milli += milli(d.desired.Providers[i].CPU)
	}
	all.milli = cmp.Or(limit.milli, all.milli)
	return all
}

// tally counts what a job holds now in place of what was counted before.
func (d *differ) tally(addr schema.Address) {
	if d.shares == nil {
		return
	}
	was := d.shares.held[addr]
	is := holding{}
	if j := d.next.Jobs[addr]; j != nil {
		is = holding{load: load{}.plus(d.eachLoad(j.Spec), len(j.Slices)), band: bandOrder(j.Spec.Band), space: spaceOf(d.shares, j), user: j.Spec.User}
		if len(j.Staged) > 0 {
			d.tallyStaged(&is, j)
		}
	}
	if was.moves && is != (holding{}) && (is.space != was.toSpace || is.user != was.toUser) {
		is.moves, is.toSpace, is.toUser = true, was.toSpace, was.toUser
	}
	if was != is {
		d.shares.recount(addr, is)
	}
}

// tallyStaged counts the slices that wait to take over, which are as the job is to
// be, not as it is.
func (d *differ) tallyStaged(is *holding, j *state.Job) {
	want := j.Spec
	for _, of := range d.family(j.Spec.Addr.Base()) {
		if of.Addr == j.Spec.Addr {
			want = of
		}
	}
	is.staged = load{}.plus(d.eachLoad(want), len(j.Staged))
	is.toSpace, is.toUser = spaceOf(d.shares, recordAs(want, j)), want.User
}

// spaceOf names the account of a job's namespace. Jobs that name none have one
// of their own name each, for their actors: these share one account, "", so that
// priorities mean something among them.
func spaceOf(s *accounts, j *state.Job) string {
	if s.declared[j.Spec.Namespace] == nil && j.Launch == nil {
		return ""
	}
	return j.Spec.Namespace
}

// of returns the accounts of a namespace and of a user in it.
func (s *accounts) of(space, user string) [2]*account {
	a := s.spaces[space]
	if a == nil {
		a = &account{name: "jobs without a namespace", weight: 1, users: map[string]*account{}}
		if space != "" {
			a.name = schema.ScopedAddress(schema.KindNamespace, space).String()
		}
		if n := s.declared[space]; n != nil {
			a.bound(&schema.UserShare{MaxChips: n.MaxChips, MaxCPU: n.MaxCPU, Budget: n.Budget, Weight: n.Weight})
		}
		s.spaces[space] = a
	}
	u := a.users[user]
	if u == nil {
		u = &account{name: "user " + strconv.Quote(user) + " of " + a.name, weight: 1}
		if n := s.declared[space]; n != nil && user != "" {
			for i := range n.Users {
				if n.Users[i].Name == user {
					u.bound(&n.Users[i])
				}
			}
		}
		a.users[user] = u
	}
	return [2]*account{a, u}
}

func (a *account) bound(by *schema.UserShare) {
	a.max, a.budget = load{chips: by.MaxChips, milli: milli(by.MaxCPU)}, by.Budget
	a.weight = cmp.Or(by.Weight, 1)
}
