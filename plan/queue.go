package plan

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
)

// unit is what is placed together: the jobs of a group, or one job. It stands
// where the best of its members would.
type unit struct {
	jobs     []*schema.Job
	addr     schema.Address // of the group or job
	fresh    bool           // some of it has no slices yet
	declared int            // band
	band     int            // in effect
	priority int
	since    time.Time // it began to wait for its turn
	space    *account
	user     *account
	over     *account // whose budget it is beyond, nil: it is within them
}

// before compares units of one namespace and user.
func (u *unit) before(v *unit) int {
	return cmp.Or(cmp.Compare(v.priority, u.priority), u.since.Compare(v.since), u.jobs[0].Addr.Compare(v.jobs[0].Addr))
}

// inOrder sorts the jobs that wait for capacity or for their start by what they
// say of themselves: band, then priority, then address, in which they are already.
func inOrder(jobs []*schema.Job) {
	slices.SortStableFunc(jobs, func(a, b *schema.Job) int {
		return cmp.Or(cmp.Compare(bandOrder(a.Band), bandOrder(b.Band)), cmp.Compare(b.Priority, a.Priority))
	})
}

const bandCount = 3

// bandOrder numbers the bands, the one that gets capacity first being 0.
func bandOrder(b schema.Band) int {
	switch b {
	case schema.BandProduction:
		return 0
	case schema.BandBatch:
		return 2
	case schema.BandInteractive:
	}
	return 1
}

func bandName(order int) schema.Band {
	return [bandCount]schema.Band{schema.BandProduction, schema.BandInteractive, schema.BandBatch}[order]
}

// units puts the jobs that belong together together, in the order of their first.
func (d *differ) units(jobs []*schema.Job) []*unit {
	all := make([]*unit, 0, len(jobs))
	groups := map[schema.Address]*unit{}
	for i, want := range jobs {
		g := want.Addr.GroupAddress()
		u := groups[g]
		switch {
		case g.IsZero():
			u = &unit{jobs: jobs[i : i+1 : i+1], addr: want.Addr}
			all = append(all, u)
		case u == nil:
			u = &unit{jobs: []*schema.Job{want}, addr: g}
			groups[g] = u
			all = append(all, u)
		default:
			u.jobs = append(u.jobs, want)
		}
		u.fresh = u.fresh || d.placeable(want) && len(d.next.Jobs[want.Addr].Slices) == 0
	}
	return all
}

// stand finds out where a unit stands.
func (d *differ) stand(u *unit) {
	s := d.accounts()
	u.declared = bandCount
	for _, want := range u.jobs {
		band := bandOrder(want.Band)
		j := d.next.Jobs[want.Addr]
		since := d.now
		if j != nil && !j.AdmittedAt.IsZero() {
			since = j.AdmittedAt
		}
		if u.declared == bandCount || since.Before(u.since) {
			u.since = since
		}
		if u.declared == bandCount || want.Priority > u.priority {
			u.priority = want.Priority
		}
		if j != nil && band < u.declared {
			both := s.of(spaceOf(s, j), want.User)
			u.space, u.user = both[0], both[1]
		}
		u.declared = min(u.declared, band)
	}
	u.band = u.declared
}

// queue hands units out in the order in which they get capacity.
type queue struct {
	d       *differ
	waiting [bandCount][]*unit
	band    int
	spaces  lines // of the current band
}

// line is those who wait within a namespace or, inside, of a user.
type line struct {
	account *account
	all     load
	users   lines   // of a namespace
	units   []*unit // of a user, in order
}

// head is who is first in it.
func (l *line) head() *unit {
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
	return cmp.Or(cmp.Compare(a.account.share(a.all), b.account.share(b.all)), a.head().before(b.head())) < 0
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

// queueUp makes the queue of those who wait.
func (d *differ) queueUp(units []*unit) *queue {
	q := &queue{d: d, band: -1}
	for _, u := range units {
		d.stand(u)
		if u.space == nil { // nothing of it is recorded
			continue
		}
		q.waiting[u.band] = append(q.waiting[u.band], u)
	}
	return q
}

// next takes the first of those who wait out, nil when all have had their turn.
// The account of the one before must be up to date.
func (q *queue) next() *unit {
	for {
		for len(q.spaces) == 0 {
			if q.band++; q.band == bandCount {
				return nil
			}
			q.spaces = q.lineUp(q.waiting[q.band])
		}
		// Whoever was handed out last has a greater share now.
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
func (q *queue) demoted(u *unit) bool {
	batch := bandOrder(schema.BandBatch)
	if u.over != nil || u.band == batch {
		return false
	}
	chips := q.d.needs(u)
	for _, a := range [2]*account{u.space, u.user} {
		if a.overBudget(u.declared, chips) {
			u.over, u.band = a, batch
			q.waiting[batch] = append(q.waiting[batch], u)
			return true
		}
	}
	return false
}

// needs is how many chips those of a unit without slices will hold.
func (d *differ) needs(u *unit) int {
	chips := 0
	for _, want := range u.jobs {
		if j := d.next.Jobs[want.Addr]; j != nil && len(j.Slices) == 0 {
			chips += want.Resources.Slices * d.eachLoad(want).chips
		}
	}
	return chips
}

// lineUp makes the lines of a band.
func (q *queue) lineUp(units []*unit) lines {
	slices.SortStableFunc(units, (*unit).before)
	all := q.d.accounts().all
	spaces, users := map[*account]*line{}, map[*account]*line{}
	var lined lines
	for _, u := range units {
		space, user := spaces[u.space], users[u.user]
		if space == nil {
			space = &line{account: u.space, all: all, users: lines{}}
			spaces[u.space] = space
			lined = append(lined, space)
		}
		if user == nil {
			user = &line{account: u.user, all: all}
			users[u.user] = user
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
