package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// noRoom says for each kind of reason on how many hosts a job's tasks do not fit.
func (d *HostCapacity) noRoom(want *schema.Job, whole []*schema.Job, grouped bool) plan.Reason {
	p, addr := d.PoolOf(want.Resources.Reservation), schema.ScopedAddress(schema.KindReservation, want.Resources.Reservation)
	if p == nil {
		return plan.Because(plan.WaitRoom, fmt.Sprintf("%s is not there", addr))
	}
	if !p.Bound.Over.IsZero() {
		return plan.Because(plan.WaitRoom, p.HasExpired(addr))
	}
	need, tasks := shareOf(&want.Resources), want.Resources.Slices
	rooms := d.roomsOf(p)
	words := d.shortages(p, &need, rooms)
	hosts := max(len(p.Specs), len(rooms))
	text := fmt.Sprintf("%s: no room for %s", addr, need)
	if tasks > 1 {
		text = fmt.Sprintf("%s: no room for %d times %s at once", addr, tasks, need)
	}
	if grouped {
		text += " beside what others of its group need"
	}
	text = fmt.Sprintf("%s: of %d host%s %s%s", text, hosts, Plural(hosts != 1), strings.Join(words, ", "), d.roomUsers(p))
	why := plan.Because(plan.WaitRoom, text)
	if !grouped && len(whole) == 0 {
		p.Full = append(p.Full, snapshot.FullFor{Share: need, Tasks: tasks, Why: why})
	}
	return why
}

// shortages count the hosts of a reservation by what they have too little of.
func (d *HostCapacity) shortages(p *snapshot.Pool, need *snapshot.Share, rooms []*snapshot.FreeHost) []string {
	counts := map[string]int{}
	for _, r := range rooms {
		switch short, ahead := r.Lacks(need), d.keptFrom(p, r, need); {
		case !ahead.IsZero():
			counts["room kept for "+ahead.String()]++
		case d.isReserved(r, nil):
			counts["used as a whole"]++
		case short.None():
			counts["room for one"]++
		case short.Of == snapshot.LackPort:
			counts[fmt.Sprintf("port %d taken", short.Port)]++
		default:
			counts[fmt.Sprintf("too little %s left", short.Of)]++
		}
	}
	words := make([]string, 0, len(counts)+1)
	for why, n := range counts {
		words = append(words, fmt.Sprintf("%d with %s", n, why))
	}
	slices.Sort(words)
	if closed := len(p.Specs) - len(rooms); closed > 0 {
		words = append(words, fmt.Sprintf("%d not to be had now", closed))
	}
	return words
}

// maxUsers is how many jobs are named that have what another one waits for.
const maxUsers = 3

// roomUsers names jobs that have a part of a reservation.
func (d *HostCapacity) roomUsers(p *snapshot.Pool) string {
	users := map[schema.Address]bool{}
	for i := range p.Specs {
		if addr, whole := d.HeldWhole(p.Specs[i].Name); whole {
			users[addr] = true
		}
		for _, name := range d.Packed[p.Specs[i].Name] {
			if s := d.Next.Slices[name]; s != nil {
				users[s.Spec.Owner] = true
			}
		}
	}
	if len(users) == 0 {
		return ""
	}
	var words []string
	for _, addr := range slices.SortedFunc(maps.Keys(users), schema.Address.Compare)[:min(len(users), maxUsers)] {
		words = append(words, addr.String())
	}
	return "; used by " + strings.Join(words, ", ") + change.More(max(0, len(users)-maxUsers))
}
