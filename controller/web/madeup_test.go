package web

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// madeUp is a stack of n jobs in all the states that there are, the same for
// the same n: for looking at pages, and for measuring.
type madeUp struct {
	random  *rand.Rand
	now     time.Time
	doc     *state.Document
	wanted  schema.Desired
	pending []plan.Pending
	hosts   map[string][]plan.Host
}

func makeUp(n int, now time.Time) *Snapshot {
	m := &madeUp{
		random: rand.New(rand.NewPCG(uint64(n), 1)), now: now, hosts: map[string][]plan.Host{},
		doc: &state.Document{
			Lineage: "k3v9q2m7x1zt8w4r", Serial: 4711, Revision: 12, Epoch: 3, Jobs: map[schema.Address]*state.Job{},
			Slices: map[string]*state.Slice{}, Resources: map[schema.Address]state.Resource{}, Former: state.Former{Past: map[string]*state.Job{}},
			ZoneHealth: map[string]state.ZoneHealth{
				"europe-west4-b/v5p-32/spot": {Kind: schema.ErrorCapacity, Reason: "There is no more capacity in the zone \"europe-west4-b\"; you can try again in another zone", Failures: 4, At: now.Add(-time.Minute), Until: now.Add(7 * time.Minute)},
			},
		},
	}
	m.wanted.Providers = []schema.Provider{{Name: schema.ProviderGCP, Zones: zones()}}
	for i, name := range []string{"pretrain", "rl", "eval", "data"} {
		m.wanted.Namespaces = append(m.wanted.Namespaces, schema.Namespace{
			Addr: schema.Address{Kind: schema.KindNamespace, Name: name}, MaxChips: 4096, Budget: 256 << i, Weight: float64(4 - i),
			Users: []schema.UserShare{{Name: "ada", Weight: 2}, {Name: "grace"}},
		})
	}
	m.reservations()
	parent := ""
	for i := range n {
		id := m.job(i, parent)
		switch i % 24 {
		case 3:
			parent = id
		case 11:
			parent = ""
		}
	}

	return &Snapshot{Leads: true, View: access.View{
		Doc: m.doc, Wanted: &m.wanted, Plan: &plan.Plan{Pending: m.pending}, Hosts: m.hosts, Attended: time.Hour + time.Second, At: now, Took: 21 * time.Millisecond,
		Lease: store.Lease{Epoch: 3, Host: "head-0", User: "ada", PID: 4242, AcquiredAt: now.Add(-26 * time.Hour), Yielding: store.Yielding{Yields: true}},
	}}
}

func zones() []string {
	return []string{"us-central1-a", "us-east5-b", "us-west4-a", "europe-west4-b"}
}

func (m *madeUp) reservations() {
	for i, name := range []string{"pool", "eval-pool"} {
		r := schema.Reservation{
			Addr: schema.Address{Kind: schema.KindReservation, Name: name}, Provider: schema.ProviderGCP, Preemptible: true, Priority: 10 - i,
			Min: schema.Capacity{TPU: "v5litepod-16", Slices: 4}, Max: schema.Capacity{TPU: "v5litepod-16", Slices: 12}, TTL: schema.Duration(72 * time.Hour),
		}
		m.wanted.Reservations = append(m.wanted.Reservations, r)
		m.doc.Resources[r.Addr] = state.Resource{Since: m.now.Add(-70 * time.Hour), Reservation: &r}
		for n := range 7 - 2*i {
			slice := m.slice(r.Addr, n, "v5litepod-16")
			if n == 6 {
				slice.UpAt = time.Time{}
			} else {
				slice.IdleSince = m.now.Add(-time.Duration(40*n) * time.Second)
			}
		}
	}
	m.pending = append(m.pending, plan.Pending{Addr: m.wanted.Reservations[0].Addr, Reasons: []string{"europe-west4-b: no capacity for v5litepod-16; next try in 7m0s"}})
}

func (m *madeUp) slice(owner schema.Address, n int, tpu string) *state.Slice {
	zone := zones()[m.random.IntN(4)]
	name := fmt.Sprintf("%s-%d-%s-%x", owner.Name, n, zone, m.random.IntN(1<<20))
	s := &state.Slice{
		Spec:   schema.SliceSpec{Name: name, Stack: m.doc.Stack(), Owner: owner, Index: n, Provider: schema.ProviderGCP, TPU: tpu, Zone: zone, Preemptible: true, Hosts: hostsOf(tpu)},
		Listed: true, PendingSince: m.now.Add(-time.Duration(1+m.random.IntN(400)) * time.Minute),
	}
	s.UpAt = s.PendingSince.Add(90 * time.Second)
	m.doc.Slices[name] = s
	for host := range s.Spec.Hosts {
		m.hosts[name] = append(m.hosts[name], plan.Host{HostReport: state.HostReport{Slice: name, Host: host, Seq: 9}, Heartbeat: plan.NewHeartbeat(time.Hour)})
	}
	return s
}

func hostsOf(tpu string) int {
	shape, err := accelerators.Parse(tpu)
	if err != nil {
		return 1
	}
	return shape.Hosts
}

// job adds the i-th job and returns its id.
func (m *madeUp) job(i int, parent string) string {
	namespace := []string{"pretrain", "rl", "eval", "data"}[i%4]
	addr := schema.Address{Kind: schema.KindJob, Name: []string{"train", "rollout", "score", "tokenize"}[i%4], Key: schema.IntKey(i)}
	tpu := []string{"v5p-32", "v5litepod-8", "v5litepod-4", "v6e-16"}[i%4]
	j := &state.Job{
		ID: fmt.Sprintf("job-%05d-%x", i, m.random.IntN(1<<24)), AdmittedAt: m.now.Add(-time.Duration(10+i%500) * time.Minute),
		Spec: &schema.Job{
			Addr: addr, Namespace: namespace, User: []string{"ada", "grace", "", "edsger"}[i%4], Band: []schema.Band{schema.BandProduction, "", schema.BandBatch}[i%3],
			Command:     []schema.Text{schema.Plain("python"), schema.Plain("-m"), schema.Plain("lab." + addr.Name), schema.Plain(fmt.Sprintf("--shard=%d", i))},
			Resources:   schema.Resources{Provider: schema.ProviderGCP, TPU: tpu, Slices: 1 + i%2, Preemptible: true},
			Environment: schema.Environment{Env: map[string]schema.Text{"WANDB_PROJECT": schema.Plain("lab"), "WANDB_API_KEY": schema.Secret("hunter2")}},
			Retries:     schema.Retries{Failure: 3, Preemption: 100},
		},
	}
	if parent != "" {
		j.Launch = &state.Launch{Name: fmt.Sprintf("%s-%d", addr.Name, i), Parent: parent, At: j.AdmittedAt}
		addr = schema.LaunchedAddress(schema.KindJob, namespace, "", j.Launch.Name)
		j.Spec.Addr = addr
	}
	m.doc.Jobs[addr] = j
	m.live(i, addr, j)
	return j.ID
}

// live gives a job a past.
func (m *madeUp) live(i int, addr schema.Address, j *state.Job) {
	switch kind := i % 12; {
	case kind == 9:
		j.Status, j.Reason = schema.JobPending, "behind 3 others: job.train[3], job.train[15], job.train[27]"
		m.pending = append(m.pending, plan.Pending{Addr: addr, Reasons: []string{
			"us-central1-a: no capacity for " + j.Spec.Resources.TPU + "; next try in 2m10s", "europe-west4-b: quota of 256 chips used up",
			"over the budget of namespace rl by 32 chips: yields to band production",
		}})
		return
	case kind == 10:
		j.Status = schema.JobPending
		m.pending = append(m.pending, plan.Pending{Addr: addr, Blocked: true, Reasons: []string{"job.tokenize[11] has failed, which it depends on"}})
		return
	case kind == 11:
		j.Status, j.Reason, j.EndedAt, j.Failures = schema.JobFailed, "task 0 exited with code 1; 3 of 3 retries used", m.now.Add(-time.Duration(i)*time.Minute), 4
	case kind > 6:
		j.Status, j.EndedAt = schema.JobSucceeded, m.now.Add(-5*time.Minute)
	default:
		j.Status, j.Ready = schema.JobRunning, kind != 2
	}
	m.attempts(i, j)
}

func (m *madeUp) attempts(i int, j *state.Job) {
	n, began := 1+i%5, j.AdmittedAt.Add(40*time.Second)
	length := m.now.Sub(began) / time.Duration(n)
	for number := 1; number <= n; number++ {
		a := state.Attempt{Number: number, StartedAt: began, ReadyAt: began.Add(length / 9), Why: cmp.Or(map[int]string{1: "first attempt"}[number], "retry after preemption")}
		var outcome schema.TaskState
		if number < n {
			outcome = []schema.TaskState{schema.TaskPreempted, schema.TaskWorkerFailed, schema.TaskFailed}[number%3]
			a.Reason = "slice was preempted in us-east5-b"
		} else if j.Status == schema.JobFailed {
			outcome, a.Reason = schema.TaskFailed, "task 0 exited with code 1"
		} else if j.Status == schema.JobSucceeded {
			outcome = schema.TaskSucceeded
		}
		if a.Outcome = outcome; outcome != "" {
			a.EndedAt = began.Add(length * 9 / 10)
		}
		if outcome == schema.TaskPreempted {
			j.Preemptions++
		}
		for index := range j.Spec.Resources.Slices {
			if number == n {
				s := m.slice(j.Spec.Addr, index, j.Spec.Resources.TPU)
				a.Slices = append(a.Slices, s.Spec.Name)
				if outcome == "" {
					j.Slices = append(j.Slices, s.Spec.Name)
				} else {
					delete(m.doc.Slices, s.Spec.Name)
				}
			} else {
				a.Slices = append(a.Slices, fmt.Sprintf("train-%d-us-east5-b-%x", index, number))
			}
		}
		m.tasks(&a, j)
		j.Attempts = append(j.Attempts, a)
		began = began.Add(length)
	}
	j.Attempt = n
}

func (m *madeUp) tasks(a *state.Attempt, j *state.Job) {
	for _, name := range a.Slices {
		for host := range hostsOf(j.Spec.Resources.TPU) {
			t := state.Task{Slice: name, Host: host, Address: fmt.Sprintf("10.0.%d.%d", len(a.Tasks), host+2), State: cmp.Or(a.Outcome, schema.TaskRunning), Started: true, Ports: map[string]int{"http": 8080}}
			if !j.Ready && t.State == schema.TaskRunning && host > 0 {
				t.State = schema.TaskBuilding
			}
			if a.Outcome == schema.TaskFailed && len(a.Tasks) == 0 {
				code := 1
				t.ExitCode, t.Reason = &code, "exited with code 1"
				t.Tail = []string{"Traceback (most recent call last):", "  File \"train.py\", line 88, in <module>", "    main()", "ValueError: loss is nan at step 1200"}
			}
			a.Tasks = append(a.Tasks, t)
		}
	}
}
