package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

// Builders of configurations.

type jobOption func(*schema.Job)

func newJob(name string, options ...jobOption) schema.Job {
	j := schema.Job{
		Addr:      schema.Address{Kind: schema.KindJob, Name: name},
		Namespace: "default",
		Command:   []schema.Text{schema.Plain("run"), schema.Plain(name)},
		Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
		Retries:   schema.Retries{Preemption: 100},
		StopGrace: schema.Duration(10 * time.Second),
	}
	for _, o := range options {
		o(&j)
	}
	return j
}

func inGroup(group string) jobOption { return func(j *schema.Job) { j.Addr.Group = group } }
func instance(n int) jobOption       { return func(j *schema.Job) { j.Addr.Key = schema.IntKey(n) } }
func asService(j *schema.Job)        { j.Addr.Kind = schema.KindActorService }
func onSlices(n int) jobOption       { return func(j *schema.Job) { j.Resources.Slices = n } }
func from(pool string) jobOption     { return func(j *schema.Job) { j.Resources.Reservation = pool } }
func failures(n int) jobOption       { return func(j *schema.Job) { j.Retries.Failure = n } }
func preemptions(n int) jobOption    { return func(j *schema.Job) { j.Retries.Preemption = n } }
func always(j *schema.Job)           { j.Retries.OnSuccess = true }
func healthy(j *schema.Job) {
	j.HealthCheck = &schema.Health{TCP: true, Port: "80", Interval: schema.Duration(time.Second), Threshold: 3}
}

func onTPU(tpu string) jobOption {
	return func(j *schema.Job) {
		j.Resources.TPU, j.Resources.CPU, j.Resources.Preemptible = tpu, 0, true
	}
}

func onGPUs(kind string, n int) jobOption {
	return func(j *schema.Job) { j.Resources.GPU, j.Resources.CPU = schema.GPU{Type: kind, Count: n}, 0 }
}

// machineOf adds a provider that has only so many GPUs.
func machineOf(desired schema.Desired, kind string, n int) schema.Desired {
	desired.Providers = []schema.Provider{{Name: schema.ProviderLocal, GPU: schema.GPU{Type: kind, Count: n}}}
	return desired
}

func after(on ...schema.Address) jobOption {
	return func(j *schema.Job) { j.DependsOn = append(j.DependsOn, on...) }
}

func using(on ...schema.Address) jobOption {
	return func(j *schema.Job) { j.Uses = append(j.Uses, on...) }
}

func withEnv(name, value string) jobOption {
	return func(j *schema.Job) { j.Environment.Env = map[string]schema.Text{name: schema.Plain(value)} }
}

func withPriority(band schema.Band, n int) jobOption {
	return func(j *schema.Job) { j.Band, j.Priority = band, n }
}

func newPool(name, tpu string, n int) schema.Reservation {
	c := schema.Capacity{TPU: tpu, Slices: n}
	if tpu == "" {
		c.CPU = 1
	}
	return schema.Reservation{
		Addr: schema.Address{Kind: schema.KindReservation, Name: name}, Provider: schema.ProviderLocal, Min: c, Max: c,
	}
}

// configuration puts jobs in order and declares their groups, as the language does.
func configuration(jobs ...schema.Job) schema.Desired {
	var desired schema.Desired
	for i := range jobs {
		if g := jobs[i].Addr.Group; g != "" {
			addr := schema.Address{Kind: schema.KindJobGroup, Name: g}
			if !slices.ContainsFunc(desired.Groups, func(g schema.JobGroup) bool { return g.Addr == addr }) {
				desired.Groups = append(desired.Groups, schema.JobGroup{Addr: addr, Namespace: "default"})
			}
		}
	}
	desired.Jobs = slices.Clone(jobs)
	slices.SortFunc(desired.Groups, func(a, b schema.JobGroup) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(desired.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
	return desired
}

// withPools adds reservations and gives the jobs that draw from them their shape.
func withPools(desired schema.Desired, pools ...schema.Reservation) schema.Desired {
	desired.Reservations = pools
	for _, p := range pools { // a group may have nothing else
		if g := p.Addr.GroupAddress(); !g.IsZero() && !slices.ContainsFunc(desired.Groups, func(of schema.JobGroup) bool { return of.Addr == g }) {
			desired.Groups = append(slices.Clip(desired.Groups), schema.JobGroup{Addr: g, Namespace: "default"})
		}
	}
	desired.Jobs = slices.Clone(desired.Jobs)
	for i := range desired.Jobs {
		r := &desired.Jobs[i].Resources
		for _, p := range pools {
			if r.Reservation == p.Addr.Scoped() && r.Packed && p.Min.TPU == "" {
				r.Preemptible = p.Preemptible
			} else if r.Reservation == p.Addr.Scoped() {
				r.Packed = false
				r.TPU, r.CPU, r.Memory, r.Preemptible = p.Min.TPU, p.Min.CPU, p.Min.Memory, p.Preemptible
			}
		}
	}
	return desired
}

// limited adds a provider that has only so many slices.
func limited(desired schema.Desired, n int) schema.Desired {
	desired.Providers = []schema.Provider{{Name: schema.ProviderLocal, Slices: n}}
	return desired
}

func jobAddr(name string) schema.Address { return schema.Address{Kind: schema.KindJob, Name: name} }

func memberAddr(group, name string) schema.Address {
	return schema.Address{Kind: schema.KindJob, Group: group, Name: name}
}
