package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// noRoom says for each kind of reason on how many hosts a job's tasks do not fit.
func (d *differ) noRoom(want *schema.Job, whole []*schema.Job, grouped bool) reason {
	p, addr := d.poolOf(want.Resources.Reservation), schema.ScopedAddress(schema.KindReservation, want.Resources.Reservation)
	if p == nil {
		return because(WaitRoom, fmt.Sprintf("%s is not there", addr))
	}
	if !p.bound.over.IsZero() {
		return because(WaitRoom, p.hasExpired(addr))
	}
	need, tasks := shareOf(&want.Resources), want.Resources.Slices
	rooms := d.roomsOf(p)
	words := d.shortages(p, &need, rooms)
	hosts := max(len(p.specs), len(rooms))
	text := fmt.Sprintf("%s: no room for %s", addr, need)
	if tasks > 1 {
		text = fmt.Sprintf("%s: no room for %d times %s at once", addr, tasks, need)
	}
	if grouped {
		text += " beside what others of its group need"
	}
	text = fmt.Sprintf("%s: of %d host%s %s%s", text, hosts, plural(hosts != 1), strings.Join(words, ", "), d.roomUsers(p))
	why := because(WaitRoom, text)
	if !grouped && len(whole) == 0 {
		p.full = append(p.full, fullFor{need, tasks, why})
	}
	return why
}

// shortages count the hosts of a reservation by what they have too little of.
func (d *differ) shortages(p *pool, need *share, rooms []*room) []string {
	counts := map[string]int{}
	for _, r := range rooms {
		switch short, ahead := r.lacks(need), d.keptFrom(p, r, need); {
		case !ahead.IsZero():
			counts["room kept for "+ahead.String()]++
		case d.isReserved(r, nil):
			counts["used as a whole"]++
		case short.none():
			counts["room for one"]++
		case short.of == lackPort:
			counts[fmt.Sprintf("port %d taken", short.port)]++
		default:
			counts[fmt.Sprintf("too little %s left", short.of)]++
		}
	}
	words := make([]string, 0, len(counts)+1)
	for why, n := range counts {
		words = append(words, fmt.Sprintf("%d with %s", n, why))
	}
	slices.Sort(words)
	if closed := len(p.specs) - len(rooms); closed > 0 {
		words = append(words, fmt.Sprintf("%d not to be had now", closed))
	}
	return words
}

// maxUsers is how many jobs are named that have what another one waits for.
const maxUsers = 3

// roomUsers names jobs that have a part of a reservation.
func (d *differ) roomUsers(p *pool) string {
	users := map[schema.Address]bool{}
	for i := range p.specs {
		if addr, whole := d.heldWhole(p.specs[i].Name); whole {
			users[addr] = true
		}
		for _, name := range d.guests[p.specs[i].Name] {
			if s := d.next.Slices[name]; s != nil {
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
	return "; used by " + strings.Join(words, ", ") + more(max(0, len(users)-maxUsers))
}
