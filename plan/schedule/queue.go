package schedule

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// InOrder sorts the jobs that wait for capacity or for their start by what they
// say of themselves: band, then priority, then address, in which they are already.
func InOrder(jobs []*schema.Job) {
	slices.SortStableFunc(jobs, func(a, b *schema.Job) int {
		return cmp.Or(cmp.Compare(capacity.BandOrder(a.Band), capacity.BandOrder(b.Band)), cmp.Compare(b.Priority, a.Priority))
	})
}

// units puts the jobs that belong together together, in the order of their first.
func (d *Claims) units(jobs []*schema.Job) []*capacity.Unit {
	all := make([]*capacity.Unit, 0, len(jobs))
	groups := map[schema.Address]*capacity.Unit{}
	for i, want := range jobs {
		g := want.Addr.GroupAddress()
		u := groups[g]
		switch {
		case g.IsZero():
			u = &capacity.Unit{Jobs: jobs[i : i+1 : i+1], Addr: want.Addr}
			all = append(all, u)
		case u == nil:
			u = &capacity.Unit{Jobs: []*schema.Job{want}, Addr: g}
			groups[g] = u
			all = append(all, u)
		default:
			u.Jobs = append(u.Jobs, want)
		}
		u.Fresh = u.Fresh || d.Placeable(want) && len(d.JobAt(want.Addr).Slices) == 0
	}
	return all
}

// stand finds out where a unit stands.
func (d *Claims) stand(u *capacity.Unit) {
	s := d.Accounts()
	u.Declared = capacity.BandCount
	for _, want := range u.Jobs {
		band := capacity.BandOrder(want.Band)
		j := d.JobAt(want.Addr)
		since := d.Now
		if j != nil && !j.AdmittedAt.IsZero() {
			since = j.AdmittedAt
		}
		if u.Declared == capacity.BandCount || since.Before(u.Since) {
			u.Since = since
		}
		if u.Declared == capacity.BandCount || want.Priority > u.Priority {
			u.Priority = want.Priority
		}
		if j != nil && band < u.Declared {
			both := s.Of(capacity.SpaceOf(s, j), want.User)
			u.Space, u.User = both[0], both[1]
		}
		u.Declared = min(u.Declared, band)
	}
	u.Band = u.Declared
}

// queue hands units out in the order in which they get capacity.
type queue struct {
	d       *Claims
	waiting [capacity.BandCount][]*capacity.Unit
	band    int
	spaces  lines // of the current band
}

// line is the units that wait within a namespace or, inside it, of a user.
type line struct {
	account *capacity.Account
	all     snapshot.Load
	users   lines            // of a namespace
	units   []*capacity.Unit // of a user, in order
}

// head is who is first in it.
func (l *line) head() *capacity.Unit {
	if l.users != nil {
		return l.users[0].head()
	}
	return l.units[0]
}

// lines are a heap, the one that is next on top.
type lines []*line

var _ heap.Interface = (*lines)(nil)

// Len is that of sort.Interface.
func (l *lines) Len() int { return len(*l) }

// Less is that of sort.Interface.
func (l *lines) Less(i, j int) bool {
	a, b := (*l)[i], (*l)[j]
	return cmp.Or(cmp.Compare(a.account.Share(a.all), b.account.Share(b.all)), a.head().Before(b.head())) < 0
}

// Swap is that of sort.Interface.
func (l *lines) Swap(i, j int) { (*l)[i], (*l)[j] = (*l)[j], (*l)[i] }

// Push is that of heap.Interface.
func (l *lines) Push(x any) {
	if added, ok := x.(*line); ok {
		*l = append(*l, added)
	}
}

// Pop is that of heap.Interface.
func (l *lines) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// queueUp makes the queue of the units that wait.
func (d *Claims) queueUp(units []*capacity.Unit) *queue {
	q := &queue{d: d, band: -1}
	for _, u := range units {
		d.stand(u)
		if u.Space == nil { // nothing of it is recorded
			continue
		}
		q.waiting[u.Band] = append(q.waiting[u.Band], u)
	}
	return q
}

// next takes the first waiting unit out, nil when all have had their turn.
// The account of the one before must be up to date.
func (q *queue) next() *capacity.Unit {
	for {
		for len(q.spaces) == 0 {
			if q.band++; q.band == capacity.BandCount {
				return nil
			}
			q.spaces = q.lineUp(q.waiting[q.band])
		}
		// The unit that was taken out last has a greater share now.
		heap.Fix(&q.spaces[0].users, 0)
		heap.Fix(&q.spaces, 0)
		space := q.spaces[0]
		u := space.head()
		space.leave(&q.spaces)
		if !q.demoted(u) {
			return u
		}
	}
}

// leave takes the head out of a line, which is the first of its heap.
func (l *line) leave(spaces *lines) {
	user := l.users[0]
	user.units = user.units[1:]
	if len(user.units) == 0 {
		heap.Pop(&l.users)
	}
	if len(l.users) == 0 {
		heap.Pop(spaces)
	}
}

// demoted reports whether a unit is beyond a budget, and then has it wait with
// those of band batch.
func (q *queue) demoted(u *capacity.Unit) bool {
	batch := capacity.BandOrder(schema.BandBatch)
	if u.Over != nil || u.Band == batch {
		return false
	}
	if u.Space.Budget == 0 && u.User.Budget == 0 {
		return false
	}
	chips := q.d.needs(u)
	for _, a := range [2]*capacity.Account{u.Space, u.User} {
		if a.OverBudget(u.Declared, chips) {
			u.Over, u.Band = a, batch
			q.waiting[batch] = append(q.waiting[batch], u)
			return true
		}
	}
	return false
}

// needs is how many chips those of a unit without slices will hold.
func (d *Claims) needs(u *capacity.Unit) int {
	chips := 0
	for _, want := range u.Jobs {
		if j := d.JobAt(want.Addr); j != nil && len(j.Slices) == 0 {
			chips += want.Resources.Slices * d.LoadOf(d.Running(want)).Chips
		}
	}
	return chips
}

// lineUp makes the lines of a band.
func (q *queue) lineUp(units []*capacity.Unit) lines {
	slices.SortStableFunc(units, (*capacity.Unit).Before)
	all := q.d.Accounts().All
	spaces, users := map[*capacity.Account]*line{}, map[*capacity.Account]*line{}
	var lined lines
	for _, u := range units {
		space, user := spaces[u.Space], users[u.User]
		if space == nil {
			space = &line{account: u.Space, all: all, users: lines{}}
			spaces[u.Space] = space
			lined = append(lined, space)
		}
		if user == nil {
			user = &line{account: u.User, all: all}
			users[u.User] = user
			space.users = append(space.users, user)
		}
		user.units = append(user.units, u)
	}
	for _, space := range lined {
		heap.Init(&space.users)
	}
	heap.Init(&lined)
	return lined
}

// listed lists addresses, the first few of them.
func listed(addrs []schema.Address, n int) string {
	const most = 3
	var b strings.Builder
	for i := range min(len(addrs), most) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(addrs[i].String())
	}
	if n > most {
		b.WriteString(", …")
	}
	return b.String()
}
