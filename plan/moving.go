package plan

import (
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job may change its namespace or its user while it holds something. It goes on
// in place where the limits of the new one leave room for what it holds, and is
// counted for both until that is done, so that nobody takes the room meanwhile.
// Where they do not it is replaced: it gives up what it has, and waits in the new
// one like any other. So no limit is ever exceeded, and two that change places
// cannot wait for each other.

// outgrows says why what a job holds has no room in the namespace that it is to be
// in, or for the user, nothing if it has; it is then counted there too.
func (d *differ) outgrows(want *schema.Job, j *state.Job) reason {
	n := len(j.Slices)
	if n == 0 || j.Spec.Namespace == want.Namespace && j.Spec.User == want.User {
		return reason{}
	}
	s := d.accounts()
	to := holding{load: load{}.plus(d.eachLoad(j.Spec), n), band: bandOrder(want.Band), space: spaceOf(s, recordAs(want, j)), user: want.User}
	was := s.held[want.Addr]
	if was.moves && was.toSpace == to.space && was.toUser == to.user {
		return reason{}
	}
	for i, a := range s.of(to.space, to.user) {
		if i == 0 && to.space == was.space { // which has it already
			continue
		}
		if to.load.exceeds(a.used, a.max) {
			return because(WaitLimit, a.name+": "+spaceShortage(to.load, a.used, a.max)+"; it gives up what it has, and waits there")
		}
	}
	is := was
	is.moves, is.toSpace, is.toUser = true, to.space, to.user
	s.recount(want.Addr, is)
	return reason{}
}

// recordAs is a job's record as it will be under another spec, as far as accounts
// look at it.
func recordAs(want *schema.Job, j *state.Job) *state.Job {
	return &state.Job{Spec: want, Launch: j.Launch}
}

// recount counts a job in another way than before.
func (s *accounts) recount(addr schema.Address, is holding) {
	was := s.held[addr]
	s.count(&was, -1)
	s.count(&is, 1)
	s.held[addr] = is
}

// count adds n times what a job was counted with, once to each account.
func (s *accounts) count(h *holding, n int) {
	from := s.of(h.space, h.user)
	for _, a := range from {
		a.add(h.load, h.band, n)
	}
	if !h.moves && h.staged == (load{}) {
		return
	}
	for i, a := range s.of(h.toSpace, h.toUser) {
		a.add(h.staged, h.band, n)
		if h.moves && a != from[i] {
			a.add(h.load, h.band, n)
		}
	}
}

func (a *account) add(l load, band, n int) {
	a.used = a.used.plus(l, n)
	a.banded[band] += n * l.chips
}
