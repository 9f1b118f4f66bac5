package soak

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// change is what one client wants done, once. It is a function of the
// configuration that it finds, so that anybody can check what came of it.
type change struct {
	id   string
	seed uint64
}

const (
	ledger   = "ledger"
	ledgerOf = "changes" // label of the job that lists all changes ever made, in order
)

func jobAddr(name string) schema.Address { return schema.Address{Kind: schema.KindJob, Name: name} }

// base is the configuration that every run begins with.
func base() schema.Desired {
	return schema.Desired{
		Providers: []schema.Provider{{Name: schema.ProviderLocal}},
		Jobs:      []schema.Job{newJob(ledger)},
	}
}

func newJob(name string) schema.Job {
	return schema.Job{
		Addr: jobAddr(name), Namespace: "soak", Command: []schema.Text{schema.Plain("run"), schema.Plain(name)},
		Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
		Retries:   schema.Retries{Failure: schema.Unlimited, Preemption: schema.Unlimited},
	}
}

// ledgerIn lists the changes that a configuration has had.
func ledgerIn(d *schema.Desired) []string {
	for i := range d.Jobs {
		if d.Jobs[i].Addr.Name == ledger {
			return strings.Fields(d.Jobs[i].Labels[ledgerOf])
		}
	}
	return nil
}

// on makes the change.
func (c change) on(before schema.Desired) schema.Desired {
	after := before
	after.Jobs = slices.Clone(before.Jobs)
	i := slices.IndexFunc(after.Jobs, func(j schema.Job) bool { return j.Addr.Name == ledger })
	done := append(ledgerIn(&before), c.id)
	after.Jobs[i].Labels = map[string]string{ledgerOf: strings.Join(done, " ")}

	d := roll(c.seed, 2)
	if n := len(after.Jobs); n > 1 && d.chance(min(900, 100*n)) { // about eight jobs
		victim := d.n(n)
		if victim == i {
			victim = (victim + 1) % n
		}
		j := &after.Jobs[victim]
		switch d.n(5) {
		case 0, 1, 2:
			after.Jobs = slices.Delete(after.Jobs, victim, victim+1)
		case 3:
			j.Environment.Env = map[string]schema.Text{"CHANGE": schema.Plain(c.id)}
		case 4:
			reshape(j, d)
		}
		if d.chance(300) {
			j.Lifecycle = lifecycle(d)
		}
		return after
	}
	// Names are used again, so that a slice of a former job is in the way.
	job := newJob(fmt.Sprintf("j%d", d.n(12)))
	if slices.ContainsFunc(after.Jobs, func(j schema.Job) bool { return j.Addr == job.Addr }) {
		return after
	}
	job.Environment.Env = map[string]schema.Text{"CHANGE": schema.Plain(c.id)}
	reshape(&job, d)
	job.Lifecycle = lifecycle(d)
	after.Jobs = append(after.Jobs, job)
	slices.SortFunc(after.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
	return after
}

// lifecycle is one that says nothing as often as not.
func lifecycle(d dice) schema.Lifecycle {
	l := schema.Lifecycle{PreventDestroy: d.chance(150), CreateBeforeDestroy: d.chance(400)}
	if d.chance(200) {
		l.Ignore = []string{"environment.env"}
	}
	if d.chance(300) {
		l.Trigger = fmt.Sprint(d.n(3))
	}
	return l
}

// reshape gives a job one of a few shapes: gangs of slices, slices of hosts.
func reshape(j *schema.Job, d dice) {
	r := schema.Resources{Provider: schema.ProviderLocal, Slices: 1 + d.n(2)}
	switch d.n(3) {
	case 0:
		r.CPU = 1
	case 1:
		r.TPU, r.Preemptible = "v5litepod-8", true
	case 2:
		r.TPU = "v5litepod-16"
	}
	j.Resources = r
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
