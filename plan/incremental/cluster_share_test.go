package incremental

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// shareLog sums up, for a while, what namespaces had and what they were due.
type shareLog struct {
	had, due []float64  // by namespace: chips, or cores, times steps
	all      [2]float64 // of chips, and of cores
	used     [2]float64 // slices, and cores, that were held
	wanted   [2]float64 // and that could have been
	steps    int
}

const (
	ofChips = 0
	ofCores = 1
)

// weigh looks at who has what, and who is due what.
func (c *cluster) weigh() {
	spaces := c.doc.Desired.Namespaces
	log := &c.shares
	if log.had == nil {
		log.had, log.due = make([]float64, len(spaces)), make([]float64, len(spaces))
	}
	wishes, held := c.wishes()
	for kind := range wishes {
		scarce, wanted := 0.0, 0.0
		for i := range spaces {
			scarce += held[kind][i].slices
			log.had[i] += held[kind][i].shared
			log.all[kind] += held[kind][i].shared
			for band := range capacity.BandCount {
				wanted += wishes[kind][i].slices[band]
			}
		}
		for i, n := range due(wishes[kind], scarce) {
			log.due[i] += n
		}
		log.used[kind] += scarce
		log.wanted[kind] += min(wanted, c.roomFor(kind))
	}
	log.steps++
}

// roomFor is how much there is for those that compete.
func (c *cluster) roomFor(kind int) float64 {
	room := float64(c.doc.Desired.Providers[0].Slices)
	cores := 0.0
	for _, s := range c.slices {
		if !s.isPacked() && s.spec.Owner.Kind == schema.KindReservation {
			room--
			if s.spec.TPU == "" && !c.now.Before(s.readyAt) {
				cores += s.spec.CPU
			}
		}
	}
	return [2]float64{room, cores}[kind]
}

type holdingOf struct{ slices, shared float64 }

// wishes are what namespaces want and have, of chips and of cores.
func (c *cluster) wishes() (wishes [2][]wish, held [2][]holdingOf) {
	spaces := c.doc.Desired.Namespaces
	for kind := range wishes {
		wishes[kind], held[kind] = make([]wish, len(spaces)), make([]holdingOf, len(spaces))
	}
	for i := range spaces {
		for kind := range wishes {
			wishes[kind][i].weight = max(spaces[i].Weight, 1)
		}
	}
	users := map[[2]string]float64{} // chips wanted
	for _, j := range c.doc.Jobs {
		r := &j.Spec.Resources
		i, has := c.index[j.Spec.Namespace], float64(len(j.Slices))
		chips := float64(c.chipsOf(j.Spec, 1))
		if j.Status.Ended() && has == 0 {
			continue
		}
		band, n := capacity.BandOrder(j.Spec.Band), float64(r.Slices)
		switch {
		case r.Packed:
			w, h := &wishes[ofCores][i], &held[ofCores][i]
			h.slices, h.shared = h.slices+has*r.CPU, h.shared+has*r.CPU
			w.slices[band], w.shared[band] = w.slices[band]+n*r.CPU, w.shared[band]+n*r.CPU
		case r.Reservation != "" || r.Provider == schema.ProviderGCP:
			wishes[ofChips][i].base += has * chips
			users[[2]string{j.Spec.Namespace, j.Spec.User}] += has * chips
		case has == 0 && j.RetryAt.After(c.now):
		default:
			w, h := &wishes[ofChips][i], &held[ofChips][i]
			h.slices, h.shared = h.slices+has, h.shared+has*chips
			most := c.userMax(i, j.Spec.User)
			user := [2]string{j.Spec.Namespace, j.Spec.User}
			if has == 0 && most > 0 && users[user]+n*chips > most {
				continue
			}
			users[user] += n * chips
			w.slices[band], w.shared[band] = w.slices[band]+n, w.shared[band]+n*chips
		}
	}
	for i := range spaces {
		wishes[ofChips][i].limit(&spaces[i])
	}
	return wishes, held
}

func (c *cluster) userMax(space int, user string) float64 {
	for _, u := range c.doc.Desired.Namespaces[space].Users {
		if u.Name == user {
			return float64(u.MaxChips)
		}
	}
	return 0
}

// fair compares what namespaces had with what they were due, and begins anew. Over
// a time in which jobs come and go many times no more than 5% of all may be with
// others than those that are due it, and so none has more or less than his due by
// more than that. Over shorter ones the size of jobs tells.
func (c *cluster) fair() {
	c.t.Helper()
	log := c.shares
	c.shares = shareLog{}
	total, most, who := [2]float64{}, 0.0, 0
	for i := range log.had {
		kind := ofChips
		if packs(i) {
			kind = ofCores
		}
		off := math.Abs(log.had[i]-log.due[i]) / log.all[kind]
		if total[kind] += off / 2; off > most {
			most, who = off, i
		}
	}
	held := func(kind int) float64 { return log.used[kind] / log.wanted[kind] }
	said := fmt.Sprintf("%.1f%% of chips and %.1f%% of cores were not where they were due, %s was the farthest off by %.1f%% of all; %.0f%% and %.0f%% of what could be held was",
		100*total[ofChips], 100*total[ofCores], c.doc.Desired.Namespaces[who].Addr, 100*most, 100*held(ofChips), 100*held(ofCores))
	if time.Duration(log.steps)*c.pace < 50**clusterWork {
		c.say("%s", said)
		return
	}
	if max(total[ofChips], total[ofCores]) > 0.05 || min(held(ofChips), held(ofCores)) < 0.85 {
		c.fail("%s; want at most 5%% and at least 85%%\n%s", said, log.table(c))
	}
	c.say("%s", said)
}

// table says it for each namespace.
func (l *shareLog) table(c *cluster) string {
	var b strings.Builder
	for i := range l.had {
		kind := ofChips
		if packs(i) {
			kind = ofCores
		}
		n := &c.doc.Desired.Namespaces[i]
		fmt.Fprintf(&b, "%s of weight %g had %.2f%% and was due %.2f%%\n", n.Addr, n.Weight, 100*l.had[i]/l.all[kind], 100*l.due[i]/l.all[kind])
	}
	return b.String()
}

// passedOver finds units that got capacity while one of another namespace, which
// had a smaller share and is of no lower band, had waited for longer than anybody
// is to be overtaken. Shares rise while capacity is handed out: who was due before
// is certainly so if its namespace has less at the end than the other's had before.
func (c *cluster) passedOver(before *state.Document) {
	c.t.Helper()
	granted := c.granted(before)
	if len(granted) == 0 {
		return
	}
	has, gained := map[string]holds{}, map[string]holds{}
	all := [2]holds{c.shared(before), c.shared(c.doc)}
	wants := map[[2]string]int{} // chips that are held or waited for, by namespace and user
	for addr, j := range c.doc.Jobs {
		n := c.heldOf(j)
		has[j.Spec.Namespace] = has[j.Spec.Namespace].plus(n, 1)
		if !j.Status.Ended() || len(j.Slices) > 0 {
			wants[[2]string{j.Spec.Namespace, ""}] += c.chipsOf(j.Spec, j.Spec.Resources.Slices)
			wants[[2]string{j.Spec.Namespace, j.Spec.User}] += c.chipsOf(j.Spec, j.Spec.Resources.Slices)
		}
		if was := before.Jobs[addr]; was == nil || !slices.Equal(was.Slices, j.Slices) || slices.ContainsFunc(j.Slices, func(name string) bool { return c.isNew(name, before) }) {
			gained[j.Spec.Namespace] = gained[j.Spec.Namespace].plus(n, 1)
		}
	}
	for addr, u := range c.doc.Jobs {
		space := c.space(u.Spec.Namespace)
		if !c.isDue(addr, u, before) || c.isBounded(space, u.Spec.User, wants) {
			continue
		}
		weight := max(space.Weight, 1)
		for _, v := range granted {
			r := &v.Spec.Resources
			if r.Reservation != "" || r.Provider == schema.ProviderGCP || v.Spec.Namespace == u.Spec.Namespace || c.belongs(v) {
				continue
			}
			other := max(c.space(v.Spec.Namespace).Weight, 1)
			higher, same := c.bandAtLeast(u) < capacity.BandOrder(v.Spec.Band), c.bandAtLeast(u) == capacity.BandOrder(v.Spec.Band)
			had := has[v.Spec.Namespace].plus(gained[v.Spec.Namespace], -1)
			less := !slices.ContainsFunc(all[:], func(of holds) bool {
				return has[u.Spec.Namespace].dominant(of)/weight >= had.dominant(of)/other
			})
			if higher || same && less {
				i, _ := place(c.last.Pending, addr)
				c.fail("%s (band %s) is given %v, and %s (band %s), whose namespace has less, has waited since %s: %q", v.Spec.Addr, v.Spec.Band, v.Slices,
					addr, u.Spec.Band, waitsSince(u).Format(time.DateTime), c.last.Pending[i].Reasons)
			}
		}
	}
}

// isNew reports whether a slice was given in this step, maybe under the name of one that
// was given up in it.
func (c *cluster) isNew(name string, before *state.Document) bool {
	was, is := before.Slices[name], c.doc.Slices[name]
	return was == nil || is == nil || !was.Terminating.IsZero() || !was.PendingSince.Equal(is.PendingSince)
}

// holds are the chips, and the cores of machines without chips, that someone has.
type holds struct{ chips, cores float64 }

func (h holds) plus(more holds, n float64) holds {
	return holds{h.chips + n*more.chips, h.cores + n*more.cores}
}

// dominant is the larger of the two parts of all that there is, by which namespaces
// are compared: one that holds few chips may hold most cores.
func (h holds) dominant(all holds) float64 {
	return max(h.chips/max(all.chips, 1), h.cores/max(all.cores, 1))
}

// heldOf is what a job holds.
func (c *cluster) heldOf(j *state.Job) holds {
	n := len(j.Slices) + len(j.Staged)
	if j.Spec.Resources.TPU != "" {
		return holds{chips: float64(c.chipsOf(j.Spec, n))}
	}
	return holds{cores: float64(n) * j.Spec.Resources.CPU}
}

// shared is all that there is in a document.
func (c *cluster) shared(doc *state.Document) holds {
	var all holds
	for _, s := range doc.Slices {
		switch {
		case s.Spec.On != "":
		case s.Spec.TPU != "":
			all.chips += float64(c.chipsOf(&schema.Job{Resources: schema.Resources{TPU: s.Spec.TPU}}, 1))
		default:
			all.cores += s.Spec.CPU
		}
	}
	return all
}

// bandAtLeast is the lowest band that a job may count as: beyond a budget, batch.
func (c *cluster) bandAtLeast(j *state.Job) int {
	if c.space(j.Spec.Namespace).Budget > 0 {
		return capacity.BandOrder(schema.BandBatch)
	}
	return capacity.BandOrder(j.Spec.Band)
}

// belongs reports whether others of a job's group run: for them it is waited, and
// who waits longer is better served by their end.
func (c *cluster) belongs(j *state.Job) bool {
	group := j.Spec.Addr.GroupAddress()
	if group.IsZero() {
		return false
	}
	for addr, other := range c.doc.Jobs {
		if addr.GroupAddress() == group && other.Running() {
			return true
		}
	}
	return false
}

// isDue reports whether a job waits for slices of its own, can be given them for
// all that it may have, and has waited for so long that they are kept for it. Room
// that is being made for it comes whichever other unit is given some.
func (c *cluster) isDue(addr schema.Address, j *state.Job, before *state.Document) bool {
	r := &j.Spec.Resources
	if j.Status != schema.JobPending || len(j.Slices) > 0 || r.Reservation != "" || r.Provider == schema.ProviderGCP || addr.Group != "" || before.Jobs[addr] == nil ||
		len(before.Jobs[addr].Slices) > 0 || j.RetryAt.After(c.now) || !j.YieldsTo.IsZero() {
		return false
	}
	i, _ := place(c.last.Pending, addr)
	return c.now.Sub(waitsSince(j)) >= schedule.Patience && !c.last.Pending[i].Underway
}

// isBounded reports whether a namespace, or user of it, wants more than it may have.
func (c *cluster) isBounded(space *schema.Namespace, user string, wants map[[2]string]int) bool {
	most := int(c.userMax(c.index[space.Addr.Name], user))
	return space.MaxChips > 0 && wants[[2]string{space.Addr.Name, ""}] > space.MaxChips ||
		most > 0 && wants[[2]string{space.Addr.Name, user}] > most
}

// waitsSince is when a job was admitted, or what it had has ended.
func waitsSince(j *state.Job) time.Time {
	if last := j.Last(); last != nil {
		return capacity.Later(j.AdmittedAt, last.EndedAt)
	}
	return j.AdmittedAt
}

// longestWait is for how long a unit may wait at most. Namespaces have few units
// that wait, all of which together are work for about as long as a job works in
// the mean; what runs ends after ten times that, and until then what is due may
// not be free. Higher bands may take all that there is for a part of a day, and so
// for a day batch may be given nothing.
func longestWait() time.Duration { return 24*time.Hour + 12**clusterWork }

// starving finds units that wait for too long. In the cloud that is the stockouts'
// doing.
func (c *cluster) starving() {
	c.t.Helper()
	for addr, j := range c.doc.Jobs {
		if j.Status != schema.JobPending || len(j.Slices) > 0 || j.Spec.Resources.Provider == schema.ProviderGCP {
			continue
		}
		waited := c.now.Sub(waitsSince(j))
		band := capacity.BandOrder(j.Spec.Band)
		c.tally.waits[band] = max(c.tally.waits[band], waited)
		if waited > longestWait() {
			i, _ := place(c.last.Pending, addr)
			c.fail("%s (band %s) has waited for %s: %q", addr, j.Spec.Band, waited, c.last.Pending[i].Reasons)
		}
	}
}
