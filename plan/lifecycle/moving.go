package lifecycle

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job may change its namespace or its user while it holds something. It goes on
// in place where the limits of the new one leave room for what it holds, and is
// counted for both until that is done, so that no other job takes the room meanwhile.
// Where they do not it is replaced: it gives up what it has, and waits in the new
// one like any other. So no limit is ever exceeded, and two that change places
// cannot wait for each other.

// outgrows says why what a job holds has no room in the namespace that it is to be
// in, or for the user, nothing if it has; it is then counted there too.
func (d *Jobs) outgrows(want *schema.Job, j *state.Job) plan.Reason {
	n := len(j.Slices)
	if n == 0 || j.Spec.Namespace == want.Namespace && j.Spec.User == want.User {
		return plan.Reason{}
	}
	s := d.Accounts()
	to := capacity.Holding{Load: snapshot.Load{}.Plus(d.LoadOf(d.Running(j.Spec)), n), Band: capacity.BandOrder(want.Band), Space: capacity.SpaceOf(s, capacity.RecordAs(want, j)), User: want.User}
	was := s.Held(want.Addr)
	if was.Moves && was.ToSpace == to.Space && was.ToUser == to.User {
		return plan.Reason{}
	}
	for i, a := range s.Of(to.Space, to.User) {
		if i == 0 && to.Space == was.Space { // which has it already
			continue
		}
		if to.Load.Exceeds(a.Used, a.Max) {
			return plan.Because(plan.WaitLimit, a.Name+": "+capacity.SpaceShortage(to.Load, a.Used, a.Max)+"; it gives up what it has, and waits there")
		}
	}
	is := was
	is.Moves, is.ToSpace, is.ToUser = true, to.Space, to.User
	s.Recount(want.Addr, is)
	return plan.Reason{}
}
