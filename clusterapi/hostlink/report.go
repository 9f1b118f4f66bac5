package hostlink

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Whole is a report as a message of its own.
func Whole(r *state.HostReport) *clusterapi.LiveReport { return message(&state.HostReport{}, r, 0) }

// Delta is what a report changes of one that was sent before; nothing but a number if that
// is all that changed.
func Delta(before, r *state.HostReport) *clusterapi.LiveReport { return message(before, r, before.Seq) }

func message(before, r *state.HostReport, base uint64) *clusterapi.LiveReport {
	m := &clusterapi.LiveReport{Seq: r.Seq, Base: base}
	if !sameFacts(before, r) {
		m.Facts = factsOf(r)
	}
	if before.Epoch != r.Epoch || before.Generation != r.Generation {
		m.Done = &clusterapi.HostDone{Epoch: r.Epoch, Generation: r.Generation}
	}
	if before.Notice != r.Notice {
		m.Notice = &clusterapi.HostNotice{Text: r.Notice}
	}
	if before.Task != r.Task && !reflect.DeepEqual(before.Task, r.Task) {
		m.Task = taskOf(r.Task)
	}
	if !slices.Equal(before.PackedTasks, r.PackedTasks) {
		m.PackedTasks = &clusterapi.HostPackedTasks{Slices: r.PackedTasks}
	}
	if !reflect.DeepEqual(before.HostUsage, r.HostUsage) {
		m.Usage = usageOf(r.HostUsage)
	}
	if base == 0 || !IsHeartbeat(m) {
		m.At = nanoseconds(r.At)
	}
	return m
}

// IsHeartbeat reports whether a message says nothing but that its host lives.
func IsHeartbeat(m *clusterapi.LiveReport) bool {
	return m.GetBase() != 0 && m.Facts == nil && m.Done == nil && m.Notice == nil && m.Task == nil && m.PackedTasks == nil && m.Usage == nil
}

// Fits reports whether a message is whole or changes the report at hand; nil: there is none.
func Fits(before *state.HostReport, m *clusterapi.LiveReport) bool {
	return m.GetBase() == 0 || before != nil && before.Seq == m.GetBase()
}

// Merge is the report that a message makes of the one before it, which it fits and does not
// change. The slice, host and boot of a whole one are the caller's to fill in.
func Merge(before *state.HostReport, m *clusterapi.LiveReport) (*state.HostReport, error) {
	r := &state.HostReport{}
	if m.GetBase() != 0 {
		copied := *before
		r = &copied
	}
	r.Seq = m.GetSeq()
	if m.GetAt() != 0 {
		r.At = timeOf(m.GetAt())
	}
	if f := m.GetFacts(); f != nil {
		takeFacts(r, f)
	}
	if d := m.GetDone(); d != nil {
		r.Epoch, r.Generation = d.GetEpoch(), d.GetGeneration()
	}
	if n := m.GetNotice(); n != nil {
		r.Notice = n.GetText()
	}
	if t := m.GetTask(); t != nil {
		task, err := taskFrom(t)
		if err != nil {
			return nil, err
		}
		r.Task = task
	}
	if p := m.GetPackedTasks(); p != nil {
		r.PackedTasks = p.GetSlices()
	}
	if u := m.GetUsage(); u != nil {
		r.HostUsage = usageFrom(u)
	}
	return r, nil
}

// Durable reports whether a report says something new that must not get lost: that of which
// people alone take notice is left out, and what a task waits for.
func Durable(before, r *state.HostReport) bool {
	return before.Boot != r.Boot || !sameFacts(before, r) || before.Epoch != r.Epoch || before.Generation != r.Generation ||
		before.Notice != r.Notice || !slices.Equal(before.PackedTasks, r.PackedTasks) || !sameTask(before.Task, r.Task)
}

// sameTask reports whether two reports of a task differ in nothing but what it waits for.
func sameTask(a, b *state.TaskReport) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	if a.State != b.State || a.State.Ended() {
		return reflect.DeepEqual(a, b)
	}
	copied := *b
	copied.Reason = a.Reason
	return reflect.DeepEqual(a, &copied)
}

func sameFacts(a, b *state.HostReport) bool {
	return a.Version == b.Version && a.PID == b.PID && a.Address == b.Address && a.Instance == b.Instance &&
		a.CoordinatorPort == b.CoordinatorPort && a.MegascalePort == b.MegascalePort && a.API == b.API && a.Fingerprint == b.Fingerprint &&
		slices.Equal(a.SigningKey, b.SigningKey) && slices.Equal(a.IdentityKey, b.IdentityKey)
}

func factsOf(r *state.HostReport) *clusterapi.HostFacts {
	return &clusterapi.HostFacts{
		Version: r.Version, Pid: int64(r.PID), Address: r.Address, Instance: r.Instance,
		CoordinatorPort: int64(r.CoordinatorPort), MegascalePort: int64(r.MegascalePort),
		Api: r.API, Fingerprint: r.Fingerprint, SigningKey: r.SigningKey, IdentityKey: r.IdentityKey,
	}
}

func takeFacts(r *state.HostReport, f *clusterapi.HostFacts) {
	r.Version, r.PID, r.Address, r.Instance = f.GetVersion(), int(f.GetPid()), f.GetAddress(), f.GetInstance()
	r.CoordinatorPort, r.MegascalePort = int(f.GetCoordinatorPort()), int(f.GetMegascalePort())
	r.API, r.Fingerprint = f.GetApi(), f.GetFingerprint()
	r.SigningKey, r.IdentityKey = f.GetSigningKey(), f.GetIdentityKey()
}

func taskOf(t *state.TaskReport) *clusterapi.HostTask {
	if t == nil {
		return &clusterapi.HostTask{}
	}
	m := &clusterapi.HostTask{
		Job: t.Job.String(), Attempt: int64(t.Attempt), Generation: t.Generation, Task: int64(t.Task), State: string(t.State),
		Pid: int64(t.PID), StartedAt: nanoseconds(t.StartedAt), EndedAt: nanoseconds(t.EndedAt), Signal: t.Signal, Reason: t.Reason,
		Started: t.Started, Health: string(t.Health), Tail: t.Tail, BadHost: t.BadHost,
	}
	if t.ExitCode != nil {
		m.ExitCode = new(int64(*t.ExitCode))
	}
	for name, port := range t.Ports {
		if m.Ports == nil {
			m.Ports = make(map[string]int64, len(t.Ports))
		}
		m.Ports[name] = int64(port)
	}
	if e := t.Termination; e != nil {
		m.Termination = &clusterapi.HostTermination{Cause: string(e.Cause), Message: e.Message, Type: e.Type, Trace: e.Trace}
	}
	if h := t.Hook; h != nil {
		m.BeforeStop = &clusterapi.HostHook{
			Stop: string(h.Stop), Outcome: string(h.Outcome), Reason: h.Reason, StartedAt: nanoseconds(h.StartedAt), EndedAt: nanoseconds(h.EndedAt),
		}
	}
	return m
}

func taskFrom(m *clusterapi.HostTask) (*state.TaskReport, error) {
	if proto.Size(m) == 0 {
		return nil, nil
	}
	var job schema.Address
	if m.GetJob() != "" {
		if err := job.UnmarshalText([]byte(m.GetJob())); err != nil {
			return nil, fmt.Errorf("read a host's task: %w", err)
		}
	}
	t := &state.TaskReport{
		Job: job, Attempt: int(m.GetAttempt()), Generation: m.GetGeneration(), Task: int(m.GetTask()),
		State: schema.TaskState(m.GetState()), PID: int(m.GetPid()), StartedAt: timeOf(m.GetStartedAt()), EndedAt: timeOf(m.GetEndedAt()),
		Signal: m.GetSignal(), Reason: m.GetReason(), Started: m.GetStarted(), Health: state.HealthState(m.GetHealth()),
		Tail: m.GetTail(), BadHost: m.GetBadHost(),
	}
	if m.ExitCode != nil {
		t.ExitCode = new(int(m.GetExitCode()))
	}
	for name, port := range m.GetPorts() {
		if t.Ports == nil {
			t.Ports = make(map[string]int, len(m.GetPorts()))
		}
		t.Ports[name] = int(port)
	}
	if e := m.GetTermination(); e != nil {
		t.Termination = &schema.Termination{Cause: schema.TerminationCause(e.GetCause()), Message: e.GetMessage(), Type: e.GetType(), Trace: e.GetTrace()}
	}
	if h := m.GetBeforeStop(); h != nil {
		t.Hook = &schema.HookResult{
			Stop: schema.StopReason(h.GetStop()), Outcome: schema.HookOutcome(h.GetOutcome()), Reason: h.GetReason(),
			StartedAt: timeOf(h.GetStartedAt()), EndedAt: timeOf(h.GetEndedAt()),
		}
	}
	return t, nil
}

func usageOf(u state.HostUsage) *clusterapi.HostUsage {
	m := &clusterapi.HostUsage{}
	for slice, each := range u.Usage {
		if m.Usage == nil {
			m.Usage = make(map[string]*clusterapi.TaskUsage, len(u.Usage))
		}
		t := &clusterapi.TaskUsage{Cpu: each.CPU, Memory: each.Memory, Duty: each.Duty}
		for _, a := range each.Actors {
			t.Actors = append(t.Actors, &clusterapi.HostActorUsage{
				Name: a.Name, Calls: a.Calls, Errors: a.Errors, Pending: int64(a.Pending), Mean: a.Mean, P50: a.P50, P99: a.P99,
			})
		}
		m.Usage[slice] = t
	}
	if r := u.Requests; r != nil {
		m.Requests = &clusterapi.HostRequests{Writes: r.Writes, Lists: r.Lists, Reads: r.Reads, Deletes: r.Deletes}
	}
	return m
}

func usageFrom(m *clusterapi.HostUsage) state.HostUsage {
	var u state.HostUsage
	for slice, each := range m.GetUsage() {
		if u.Usage == nil {
			u.Usage = make(map[string]state.Usage, len(m.GetUsage()))
		}
		t := state.Usage{CPU: each.GetCpu(), Memory: each.GetMemory(), Duty: each.Duty}
		for _, a := range each.GetActors() {
			t.Actors = append(t.Actors, state.ActorUsage{
				Name: a.GetName(), Calls: a.GetCalls(), Errors: a.GetErrors(), Pending: int(a.GetPending()), Mean: a.GetMean(), P50: a.GetP50(), P99: a.GetP99(),
			})
		}
		u.Usage[slice] = t
	}
	if r := m.GetRequests(); r != nil {
		u.Requests = &state.StoreRequests{Writes: r.GetWrites(), Lists: r.GetLists(), Reads: r.GetReads(), Deletes: r.GetDeletes()}
	}
	return u
}

// nanoseconds is a time as messages have it; 0: the zero one.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}
