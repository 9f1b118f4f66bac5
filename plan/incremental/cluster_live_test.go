package incremental

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What the world of the simulation does by itself, between two looks at it.

// live lets time pass.
func (c *cluster) live() {
	names := slices.Sorted(maps.Keys(c.slices))
	for _, name := range names {
		s := c.slices[name]
		switch {
		case s.isPacked():
		case !s.goneAt.IsZero() && !c.now.Before(s.goneAt), !s.diesAt.IsZero() && c.now.After(s.diesAt):
			if s.goneAt.IsZero() {
				c.lose(name)
			}
			delete(c.slices, name)
		case !c.now.Before(s.readyAt) && len(c.obs.Hosts[name]) == 0:
			hosts := make([]plan.Host, s.spec.Hosts)
			for n := range hosts {
				hosts[n] = plan.Host{HostReport: state.HostReport{Slice: name, Host: n, Address: "10.0.0.1"}}
			}
			c.obs.Hosts[name] = hosts
		}
	}
	for _, name := range names {
		s := c.slices[name]
		switch {
		case s == nil:
		case s.isPacked() && c.slices[s.spec.On] == nil:
			delete(c.slices, name)
		case s.isPacked() && s.left && s.run == nil && s.stops == nil:
			delete(c.slices, name)
		default:
			c.obey(name, s)
		}
	}
	c.takePacked(names)
	c.proceed()
}

// takePacked has the hosts take in the packed tasks that they are assigned, and drop
// others.
func (c *cluster) takePacked(names []string) {
	serves := map[string][]string{}
	for _, name := range names {
		s := c.slices[name]
		if s == nil || !s.isPacked() {
			continue
		}
		told := slices.ContainsFunc(c.obs.Assignments[s.spec.On].PackedTasks, func(g state.PackedTask) bool { return g.Slice == name })
		if s.left = !told; s.left && s.run != nil {
			s.stops, s.run = s.run, nil
		}
		serves[s.spec.On] = append(serves[s.spec.On], name)
	}
	for _, name := range names {
		s := c.slices[name]
		if s == nil || s.isPacked() || len(c.obs.Hosts[name]) == 0 {
			continue
		}
		for _, g := range c.obs.Assignments[name].PackedTasks {
			if c.slices[g.Slice] != nil {
				continue
			}
			c.slices[g.Slice] = &clusterSlice{spec: snapshot.PackedSpec(g.Owner, g.Index, &s.spec, g), readyAt: c.now}
			c.obs.Hosts[g.Slice] = []plan.Host{{HostReport: state.HostReport{Slice: g.Slice, Address: "10.0.0.1"}}}
			serves[name] = append(serves[name], g.Slice)
		}
		if slices.Sort(serves[name]); !slices.Equal(serves[name], c.obs.Hosts[name][0].PackedTasks) {
			hosts := slices.Clone(c.obs.Hosts[name])
			hosts[0].PackedTasks = serves[name]
			c.obs.Hosts[name] = hosts
		}
	}
}

// lose counts the end of a slice for its holder and its packed tasks.
func (c *cluster) lose(name string) {
	c.tally.lost++
	for addr, j := range c.doc.Jobs {
		if slices.ContainsFunc(j.Slices, func(held string) bool {
			return held == name || c.slices[held] != nil && c.slices[held].spec.On == name
		}) {
			c.losses[addr]++
		}
	}
}

// obey has the hosts of a slice do what they are told; to stop takes them a step.
func (c *cluster) obey(name string, s *clusterSlice) {
	a := c.obs.Assignments[name]
	hosts := c.obs.Hosts[name]
	if s.left {
		s.stops = nil
		return
	}
	if len(hosts) == 0 || a.Generation == hosts[0].Generation {
		return
	}
	if s.run != nil {
		s.stops, s.run = s.run, nil
		return
	}
	s.stops, s.run, s.gen = nil, a.Run, a.Generation
	hosts = slices.Clone(hosts)
	for n := range hosts {
		hosts[n].Generation = a.Generation
		if a.Run != nil {
			hosts[n].Task = &state.TaskReport{Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, State: schema.TaskRunning, Started: true}
		}
	}
	c.obs.Hosts[name] = hosts
}

// proceed takes the work of programs forward that run on all their slices, and
// ends those that are done.
func (c *cluster) proceed() {
	running := map[string][]string{} // by the ids of jobs
	tasks, machines := 0, 0
	for name, s := range c.slices {
		if s.run != nil {
			running[s.run.JobID] = append(running[s.run.JobID], name)
			tasks += s.spec.Hosts
		}
		if !s.isPacked() {
			machines++
		}
	}
	c.tally.tasks, c.tally.mostTasks = tasks, max(c.tally.mostTasks, tasks)
	c.tally.mostSlices, c.tally.mostJobs = max(c.tally.mostSlices, machines), max(c.tally.mostJobs, len(running))
	for _, id := range slices.Sorted(maps.Keys(running)) {
		names := running[id]
		run := c.slices[names[0]].run
		if addr := run.Job; len(names) == run.NumSlices {
			c.work[addr] -= c.pace
			if c.work[addr] <= 0 {
				c.exit(addr, names)
			}
		}
	}
}

// exit ends a program that has done its work, or fails.
func (c *cluster) exit(addr schema.Address, names []string) {
	end := schema.TaskSucceeded
	if c.fails[addr] && c.dice.IntN(2) == 0 {
		end, c.work[addr] = schema.TaskFailed, 10*time.Minute
		c.broke[addr]++
	}
	for _, name := range names {
		hosts := slices.Clone(c.obs.Hosts[name])
		for n := range hosts {
			report := *hosts[n].Task
			report.State = end
			hosts[n].Task = &report
		}
		c.obs.Hosts[name] = hosts
		c.slices[name].run = nil
	}
}
