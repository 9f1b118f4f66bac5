package soak

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// cloud is the truth about slices, hosts and tasks. Creating and deleting take
// time; hosts boot, obey what they are assigned, and report.
type cloud struct {
	run     *run
	slices  map[string]*slice
	made    int // slices ever
	outage  bool
	reports uint64
	starts  map[string]int // of tasks, by job id, attempt and host of one slice ever made
}

type slice struct {
	spec      schema.SliceSpec
	number    int // among all ever made: a name is used again
	phase     schema.SlicePhase
	reason    string
	created   time.Time
	changesAt time.Time // when creating or deleting is over
	hosts     []*host
}

// host is a machine; what is on its disk outlives its agent.
type host struct {
	bootsAt    time.Time
	agent      bool // is up
	boots      int
	booting    bool
	muted      time.Time // until then its reports get lost
	notice     bool
	reportedAt time.Time
	badAt      time.Time // when it was last other than well

	epoch      uint64
	generation int64      // highest seen
	done       int64      // of that, everything older has ended
	run        *state.Run // as last assigned
	task       *state.TaskReport
	spec       *state.Run // of the task
	live       bool       // a process of the task is there
	endsAt     time.Time
	fails      bool // when it ends
	stopsAt    time.Time
}

func newCloud(r *run) *cloud {
	return &cloud{run: r, slices: map[string]*slice{}, starts: map[string]int{}}
}

func (c *cloud) names() []string { return slices.Sorted(maps.Keys(c.slices)) }

func (c *cloud) inventory(stack string) (schema.Inventory, error) {
	if c.outage {
		return schema.Inventory{}, providerError("list slices", "", schema.ErrorUnavailable)
	}
	var inv schema.Inventory
	for _, name := range c.names() {
		s := c.slices[name]
		if s.spec.Stack != stack {
			inv.Foreign++
			continue
		}
		st := schema.SliceStatus{Spec: s.spec, Phase: s.phase, Reason: s.reason, CreatedAt: s.created}
		for n, h := range s.hosts {
			if !h.agent && h.boots > 0 && s.phase == schema.SliceReady {
				st.Down = append(st.Down, n)
			}
		}
		inv.Slices = append(inv.Slices, st)
	}
	return inv, nil
}

func providerError(op, name string, kind schema.ErrorKind) error {
	return &providers.Error{Kind: kind, Op: op, Name: name, Err: errors.New(string(kind))}
}

func (c *cloud) create(spec schema.SliceSpec) error {
	now := time.Now()
	s := c.slices[spec.Name]
	switch {
	case c.outage:
		return providerError("create slice", spec.Name, schema.ErrorUnavailable)
	case s != nil && s.spec != spec:
		return providerError("create slice", spec.Name, schema.ErrorConflict)
	case s != nil:
		for _, h := range s.hosts {
			if !h.agent && !h.booting && s.phase != schema.SliceDead {
				h.booting, h.bootsAt = true, now.Add(c.run.conditions.bootTakes)
			}
		}
		return nil
	case len(c.slices) >= c.run.conditions.capacity && !c.run.calm:
		return providerError("create slice", spec.Name, schema.ErrorCapacity)
	}
	c.made++
	s = &slice{
		spec: spec, number: c.made, phase: schema.SliceCreating, created: now, changesAt: now.Add(c.run.conditions.createTakes),
	}
	for n := range spec.Hosts {
		s.hosts = append(s.hosts, &host{booting: true, bootsAt: now.Add(c.run.conditions.bootTakes * time.Duration(n+1))})
	}
	c.slices[spec.Name] = s
	c.run.tally.add("slice created")
	return nil
}

func (c *cloud) delete(stack, name string) error {
	s := c.slices[name]
	switch {
	case c.outage:
		return providerError("delete slice", name, schema.ErrorUnavailable)
	case s == nil:
		return nil
	case s.spec.Stack != stack:
		return providerError("delete slice", name, schema.ErrorInvalid)
	}
	if s.phase != schema.SliceDeleting {
		s.phase, s.changesAt = schema.SliceDeleting, time.Now().Add(c.run.conditions.deleteTakes)
		c.run.tally.add("slice deleted")
	}
	return nil
}

// live lets slices and hosts go on to the present.
func (c *cloud) live() {
	now := time.Now()
	for _, name := range c.names() {
		s := c.slices[name]
		if !s.changesAt.After(now) {
			switch s.phase {
			case schema.SliceCreating:
				s.phase = schema.SliceReady
			case schema.SliceDeleting:
				delete(c.slices, name)
				continue
			case schema.SliceReady, schema.SliceDead:
			}
		}
		for n, h := range s.hosts {
			c.liveHost(s, n, h)
		}
	}
}

// where names a host of one slice ever made.
func (s *slice) where(n int) string {
	return fmt.Sprintf("host %d of %s (slice %d)", n, s.spec.Name, s.number)
}

// well reports whether a slice and all its hosts have been up, or coming up,
// for some time, so that it may not be taken for lost.
func (c *cloud) well(s *slice) bool {
	const memory = 3 * time.Minute // of what was decided and is carried out later
	now := time.Now()
	if s.phase != schema.SliceReady && s.phase != schema.SliceCreating {
		return false
	}
	for _, h := range s.hosts {
		if h.notice || !h.badAt.IsZero() && now.Sub(h.badAt) < memory {
			return false
		}
	}
	return true
}

// program is what a task does: for how long it runs (0: for ever), and how it ends.
func (c *cloud) program(run *state.Run) (lasts time.Duration, fails bool) {
	d := roll(c.run.seed, hash(fmt.Sprint(run.Job, run.Attempt)))
	forever := roll(c.run.seed, hash(run.Job.String())).chance(700)
	switch {
	case run.Attempt < 5 && d.chance(150):
		return d.between(time.Second, time.Minute), true
	case forever:
		return 0, false
	}
	return d.between(time.Second, 2*time.Minute), false
}

// lose is every way in which hosts and slices are lost.
func (c *cloud) lose(d dice, kind string) {
	names := c.names()
	if len(names) == 0 {
		return
	}
	s := c.slices[names[d.n(len(names))]]
	h := s.hosts[d.n(len(s.hosts))]
	h.badAt = time.Now()
	switch kind {
	case "preempted":
		if s.phase == schema.SliceDeleting {
			return
		}
		s.phase, s.reason = schema.SliceDead, "preempted"
		for _, h := range s.hosts {
			h.agent, h.live, h.booting = false, false, false
		}
	case "vanished":
		delete(c.slices, s.spec.Name)
	case "agent killed":
		h.agent = false
	case "host killed":
		h.agent = false
		h.lose()
	case "notice":
		h.notice = true
		if h.live {
			h.stopsAt = time.Now().Add(c.run.conditions.stopTakes)
		}
	case "muted":
		h.muted = time.Now().Add(d.between(time.Second, 90*time.Second))
	case "task failed":
		if h.live {
			h.exit(1, schema.TaskFailed)
		}
	}
	c.run.tally.add(cmp.Or(kind, "loss"))
}

// String describes the cloud for a failure message.
func (c *cloud) String() string {
	var b strings.Builder
	for _, name := range c.names() {
		s := c.slices[name]
		fmt.Fprintf(&b, "%s: %s", name, s.phase)
		for _, h := range s.hosts {
			fmt.Fprintf(&b, " {agent %t live %t notice %t epoch %d generation %d done %d", h.agent, h.live, h.notice, h.epoch, h.generation, h.done)
			if h.task != nil {
				fmt.Fprintf(&b, " task %s attempt %d generation %d %s", h.task.Job, h.task.Attempt, h.task.Generation, h.task.State)
			}
			b.WriteString("}")
		}
		b.WriteString("\n")
	}
	for addr, j := range c.run.oracle.state.Jobs {
		fmt.Fprintf(&b, "%s: %s %q attempt %d slices %v\n", addr, j.Status, j.Reason, j.Attempt, j.Slices)
	}
	for name, s := range c.run.oracle.state.Slices {
		fmt.Fprintf(&b, "recorded %s: %+v\n", name, *s)
	}
	return b.String()
}
