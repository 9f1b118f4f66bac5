package incremental

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// sharedStack is what a large user declares: slices of eight hosts in the cloud, a half of them
// in reservations with a few idle ones, groups of four jobs, and namespaces with budgets,
// limits and users. A few jobs more than there is room for wait.
func sharedStack(slices int) schema.Desired {
	const spaces, pools = 20, 8
	var jobs []schema.Job
	perPool := slices / 2 / pools
	for i := range slices {
		job := newJob(fmt.Sprintf("j%d", i/100), instance(i%100), onTPU("v5litepod-32"), inSpace(fmt.Sprintf("n%02d", i%spaces)), ofUserNamed(fmt.Sprintf("u%d", i%3)),
			failures(schema.Unlimited), preemptions(schema.Unlimited))
		job.Resources.Provider = schema.ProviderGCP
		switch {
		case i < perPool*pools:
			job.Resources.Reservation = fmt.Sprintf("pool%d", i%pools)
		case i%8 < 4:
			job.Addr.Group = fmt.Sprintf("g%d", i/8)
		}
		jobs = append(jobs, job)
	}
	for i := range 20 {
		jobs = append(jobs, newJob("late", instance(i), onTPU("v5litepod-32"), inSpace("full")))
		jobs[len(jobs)-1].Resources.Provider = schema.ProviderGCP
	}
	desired := zoned(configuration(jobs...), west, south)
	var all []schema.Reservation
	for i := range pools {
		pool := newPool(fmt.Sprintf("pool%d", i), "v5litepod-32", perPool+i%2)
		pool.Provider, pool.Preemptible = schema.ProviderGCP, true
		all = append(all, pool)
	}
	desired = withPools(desired, all...)
	for i := range spaces {
		desired.Namespaces = append(desired.Namespaces, newSpace(fmt.Sprintf("n%02d", i), func(n *schema.Namespace) {
			n.Weight, n.Budget, n.MaxChips = float64(1+i%3), 1<<20, 1<<21
			n.Users = []schema.UserShare{{Name: "u1", Weight: 2}}
		}))
	}
	desired.Namespaces = append(desired.Namespaces, newSpace("full", func(n *schema.Namespace) { n.MaxChips = 320 }))
	return desired
}

// plainStack is jobs with a slice of eight hosts each, which share nothing.
func plainStack(slices int) schema.Desired {
	jobs := make([]schema.Job, slices)
	for i := range jobs {
		jobs[i] = newJob("work", instance(i), onTPU("v5litepod-32"), failures(schema.Unlimited), preemptions(schema.Unlimited))
		jobs[i].Resources.Provider = schema.ProviderGCP
	}
	return zoned(configuration(jobs...), west)
}

// bench is a stack that runs in a world which is changed by hand.
type bench struct {
	planner Planner
	doc     *state.Document
	obs     *plan.Observed
	now     time.Time
}

// step plans once, with the clock and the numbers of an observer, and carries out what it asks
// for; it returns the processor time of the plan.
func (b *bench) step(changed map[string]bool) (*plan.Plan, time.Duration) {
	b.now = b.now.Add(250 * time.Millisecond)
	b.obs.Look++
	b.obs.Changed = changed
	began := processorTime()
	p := b.planner.Diff(&b.doc.Desired, b.doc, b.obs, b.now)
	took := processorTime() - began
	b.doc = p.Next
	return p, took
}

// processorTime is what this process has used, the collection of garbage with it.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// carryOut does at once what a plan asks for, and returns which slices have news.
func (b *bench) carryOut(p *plan.Plan) map[string]bool {
	changed := map[string]bool{}
	if len(p.Actions) == 0 {
		return changed
	}
	obs := *b.obs
	obs.Hosts, obs.Assignments, obs.Inventories = maps.Clone(obs.Hosts), maps.Clone(obs.Assignments), maps.Clone(obs.Inventories)
	b.obs = &obs
	gone := map[string]bool{}
	for _, a := range p.Actions {
		name := a.Slice.Name
		changed[name] = true
		switch a.Verb {
		case plan.CreateSlice:
			inv := obs.Inventories[a.Slice.Provider]
			inv.Slices = append(slices.Clip(inv.Slices), schema.SliceStatus{Spec: *a.Slice, Phase: schema.SliceReady})
			obs.Inventories[a.Slice.Provider] = inv
			hosts := make([]plan.Host, a.Slice.Hosts)
			for n := range hosts {
				hosts[n] = plan.Host{HostReport: state.HostReport{Slice: name, Host: n, Address: "10.0.0.1"}}
			}
			obs.Hosts[name] = hosts
			b.doc = b.planner.Folded(b.doc, a, nil, b.now)
		case plan.Assign:
			obs.Assignments[name] = plan.Assigned{Assignment: *a.Assignment, Object: obs.Assignments[name].Object + 1}
			b.report(name, func(h *plan.Host) {
				h.Generation, h.Task = a.Assignment.Generation, nil
				if run := a.Assignment.Run; run != nil {
					h.Task = &state.TaskReport{Job: run.Job, Attempt: run.Attempt, Generation: h.Generation, State: schema.TaskRunning, Started: true}
				}
			})
		case plan.DeleteSlice:
			gone[name] = true
			delete(obs.Hosts, name)
			b.doc = b.planner.Folded(b.doc, a, nil, b.now)
		case plan.ForgetSlice:
			delete(obs.Assignments, name)
			delete(obs.Hosts, name)
		case plan.RepairSlice, plan.UpdateSlice:
		}
	}
	if len(gone) > 0 {
		obs.Confirmations = map[string]plan.Confirmation{}
		for provider, inv := range obs.Inventories {
			inv.Slices = slices.DeleteFunc(slices.Clone(inv.Slices), func(st schema.SliceStatus) bool { return gone[st.Spec.Name] })
			obs.Inventories[provider] = inv
		}
		for name := range gone {
			obs.Confirmations[name] = plan.Confirmation{Answer: "gone", ReadAt: b.now}
		}
	}
	return changed
}

// report changes what the hosts of a slice report.
func (b *bench) report(name string, change func(*plan.Host)) {
	hosts, there := b.obs.Hosts[name]
	if !there {
		return
	}
	hosts = slices.Clone(hosts)
	for n := range hosts {
		change(&hosts[n])
	}
	b.obs.Hosts[name] = hosts
}

// sharedBench is a shared stack all of whose jobs run that can.
func sharedBench(tb testing.TB, n int) *bench {
	tb.Helper()
	return benchOf(tb, sharedStack(n))
}

// benchOf is a stack all of whose jobs run that can.
func benchOf(tb testing.TB, desired schema.Desired) *bench {
	tb.Helper()
	b := &bench{doc: &state.Document{Lineage: testLineage, Desired: desired}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b.obs = &plan.Observed{
		Inventories: map[schema.ProviderName]schema.Inventory{schema.ProviderGCP: {}},
		Assignments: map[string]plan.Assigned{}, Hosts: map[string][]plan.Host{},
	}
	var changed map[string]bool
	for range 20 {
		p, _ := b.step(changed)
		if changed = b.carryOut(p); len(p.Actions) == 0 {
			return b
		}
	}
	tb.Fatal("the stack does not come to rest")
	return nil
}

// BenchmarkSharedStep is the processor time of a plan of 25,000 hosts in the cloud that share
// reservations, groups, namespaces and budgets: with nothing new, with 25 failed tasks that are
// started again, and with 2,500 of its slices preempted at once, until all run again. The slices of
// as many jobs that share nothing are gone from the list at once, too.
func BenchmarkSharedStep(b *testing.B) {
	for _, n := range []int{400, 3125} {
		b.Run(fmt.Sprintf("quiet/%d", n), func(b *testing.B) { measure(b, sharedBench(b, n), 40, nil) })
		b.Run(fmt.Sprintf("25 failures/%d", n), func(b *testing.B) {
			s := sharedBench(b, n)
			names := slices.Sorted(maps.Keys(s.obs.Hosts))
			measure(b, s, 40, func(round int, changed map[string]bool) {
				for i := range 25 {
					name := names[(25*round+i)*7%len(names)]
					changed[name] = true
					s.report(name, func(h *plan.Host) {
						if h.Task != nil {
							task := *h.Task
							task.State, h.Task = schema.TaskFailed, &task
						}
					})
				}
			})
		})
		b.Run(fmt.Sprintf("preempted/%d", n), func(b *testing.B) {
			s := sharedBench(b, n)
			measure(b, s, 40, func(round int, changed map[string]bool) {
				if round > 0 {
					return
				}
				inv := s.obs.Inventories[schema.ProviderGCP]
				inv.Slices = slices.Clone(inv.Slices)
				s.obs.Confirmations = map[string]plan.Confirmation{}
				for i := range inv.Slices[:n*4/5] {
					st := &inv.Slices[i]
					st.Phase, st.Reason, st.Cause = schema.SliceDead, "preempted", schema.ErrorPreempted
					s.obs.Confirmations[st.Spec.Name] = plan.Confirmation{Answer: "found", Status: *st, ReadAt: s.now}
				}
				s.obs.Inventories[schema.ProviderGCP] = inv
			})
		})
		b.Run(fmt.Sprintf("vanished/%d", n), func(b *testing.B) {
			s := benchOf(b, plainStack(n*4/5))
			gone := s.obs.Inventories[schema.ProviderGCP].Slices
			measure(b, s, 40, func(round int, changed map[string]bool) {
				switch round {
				case 0:
					s.obs.Inventories = map[schema.ProviderName]schema.Inventory{schema.ProviderGCP: {}}
				case 4: // they were read directly
					s.obs.Confirmations = map[string]plan.Confirmation{}
					for i := range gone {
						s.obs.Confirmations[gone[i].Spec.Name] = plan.Confirmation{Answer: "gone", ReadAt: s.now}
					}
				}
			})
		})
	}
}

// measure reports the processor time of rounds of steps.
func measure(b *testing.B, s *bench, rounds int, stir func(round int, changed map[string]bool)) {
	var sum, most time.Duration
	changed, actions := map[string]bool{}, 0
	for round := range rounds {
		if stir != nil {
			stir(round, changed)
		}
		p, took := s.step(changed)
		sum, most, actions = sum+took, max(most, took), actions+len(p.Actions)
		changed = s.carryOut(p)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(rounds), "ms-cpu/step")
	b.ReportMetric(float64(most.Microseconds())/1000, "ms-cpu-most")
	b.ReportMetric(float64(actions), "actions")
}
