package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl"
)

// The data: batches of items, each rolled out as a group.
const (
	items        = 4
	itemsOfBatch = 2
	groupSize    = 2
)

// stride is how many steps lie between two deaths that are tried; `make soak` tries each.
var stride = flag.Int("crash.stride", 13, "steps between two deaths that are tried")

// process is a child, and a client of it. alive ends when it does, with errDied if it was killed: a client would wait for
// another process at the address.
type process struct {
	stdin  io.Closer
	client *actorrpc.Client
	alive  context.Context
}

func start(ctx context.Context, o orders) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+string(text))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	alive, ended := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &process{stdin: stdin, alive: alive}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		if command.Wait() != nil {
			ended(errDied)
		}
		ended(nil)
	}()
	if err != nil {
		return nil, errors.Join(errDied, p.end())
	}
	names, err := resolver.NewFixed(strings.TrimSpace(address))
	if err != nil {
		return nil, errors.Join(err, p.end())
	}
	p.client = actorrpc.NewClient(names, actorrpc.Config{})
	return p, nil
}

// errDied is a child that died before it served.
var errDied = errors.New("the child died before it served")

// end has the child end, if it has not died, and returns errDied if it had.
func (p *process) end() error {
	if p.client != nil {
		_ = p.client.Close()
	}
	_ = p.stdin.Close()
	<-p.alive.Done()
	if cause := context.Cause(p.alive); errors.Is(cause, errDied) {
		return cause
	}
	return nil
}

// script is a run that calls one process after another: when one has died, the same call goes to the next.
type script struct {
	t     *testing.T
	dir   string
	now   *process
	floor int64 // see orders
	begun map[string]bool
	died  bool
	tasks []string // of the batches that were trained on, in order
	ids   []string
}

func (s *script) start(dieAt int64) {
	for {
		p, err := start(s.t.Context(), orders{Dir: s.dir, DieAt: dieAt, Floor: s.floor})
		if err == nil {
			s.now = p
			return
		}
		if !errors.Is(err, errDied) || s.died {
			s.t.Fatal(err)
		}
		s.died, dieAt = true, 0
	}
}

// call makes a call, again if the process dies on the way. What a caller with such a process in front of it does.
func call[R any](s *script, actor, method string, args ...any) R {
	s.t.Helper()
	for {
		h, err := s.now.client.Lookup(s.now.alive, actor)
		if err == nil {
			var out R
			if out, err = actorrpc.Call[R](s.now.alive, h, method, args...); err == nil {
				return out
			}
		}
		if s.died {
			s.t.Fatalf("%s.%s: %v", actor, method, err)
		}
		if ended := s.now.end(); ended == nil {
			s.t.Fatalf("%s.%s: %v, and the process lives", actor, method, err)
		}
		s.died = true
		s.start(0)
	}
}

// rollout rolls out what there is, as one worker.
func (s *script) rollout() {
	for {
		task := call[*rl.Task](s, "data_loader", "get_next_item", "rollout_worker_0", "1")
		if task == nil {
			return
		}
		group, _ := task.Item["group_id"].(string)
		h := rl.Header{Keys: map[string]any{"group_id": group}, TaskID: task.Lease.TaskID, Lease: task.Lease.ID, Version: s.version(task)}
		got := call[string](s, "trajectory_pool", "put_trajectory", h, []byte(task.Lease.TaskID))
		if got == "re-rollout" && s.floor > 0 {
			h.Version = s.version(task)
			got = call[string](s, "trajectory_pool", "put_trajectory", h, []byte(task.Lease.TaskID))
		}
		if got != "success" {
			s.t.Fatalf("put of %s: %s", task.Lease.TaskID, got)
		}
		call[bool](s, "data_loader", "complete", task.Lease.ID, "success")
	}
}

// version is that of the weights of a task's trajectory: the first repetition of each item is rolled out by old ones at first.
func (s *script) version(task *rl.Task) *int64 {
	version := s.floor
	if id := task.Lease.TaskID; strings.HasSuffix(id, "/0") && !s.begun[id] {
		s.begun[id] = true
		version = 0
	}
	return &version
}

// train takes the batch that is there through both pools.
func (s *script) train() bool {
	batch := call[*rl.Batch](s, "trajectory_pool", "get_batch", nil, nil, "algorithm_processor_0")
	if batch == nil {
		return false
	}
	var tasks []string
	for _, payload := range batch.Payloads {
		tasks = append(tasks, string(payload))
	}
	h := rl.TrainHeader{ID: "train/" + batch.ID, BatchSize: len(tasks), Source: batch.ID}
	call[bool](s, "train_batch_pool", "put_batch", h, []byte(strings.Join(tasks, " ")))
	call[bool](s, "trajectory_pool", "ack", batch.ID)
	got := call[*rl.TrainBatch](s, "train_batch_pool", "get_batch", nil, "train_worker_0")
	if got == nil {
		s.t.Fatalf("the train batch of %s is lost", batch.ID)
	}
	s.tasks = append(s.tasks, strings.Fields(string(got.Payload))...)
	s.ids = append(s.ids, batch.ID)
	call[bool](s, "train_batch_pool", "ack", got.ID)
	return true
}

// run is a whole run, whose first process dies at a step.
func (s *script) run(dieAt int64) {
	s.start(dieAt)
	for range items / itemsOfBatch {
		s.rollout()
		for !s.train() {
			if s.floor == 0 {
				s.t.Fatalf("no batch though all that was loaded is rolled out; trained on %q", s.tasks)
			}
			s.rollout() // what was too old
		}
		call[any](s, "data_loader", "unlock_for_next_batch")
	}
	for _, actor := range []string{"trajectory_pool", "train_batch_pool"} {
		if !call[bool](s, actor, "is_empty") {
			s.t.Errorf("%s is not empty at the end", actor)
		}
	}
	if status := call[rl.LoaderStatus](s, "data_loader", "status"); !status.Finished || !status.Quiet() {
		s.t.Errorf("the loader is %+v at the end", status)
	}
	if err := s.now.end(); err != nil && s.died {
		s.t.Error(err)
	} else if err != nil {
		s.died = true // at the very last step
	}
}

// The process that hosts loader and pools is killed before any step of a lease, a put, a batch and an acknowledgement, also
// while it replays its journals; its successor has the run end as if nothing had happened.
func TestDeathBetweenAnyTwoSteps(t *testing.T) { dieAtAnyStep(t, 0) }

// N61: the same while trajectories are too old for their batch, and their tasks go back to the loader: none is lost, and none is
// trained on twice.
func TestN61_DeathWhileTasksGoBack(t *testing.T) { dieAtAnyStep(t, 1) }

func dieAtAnyStep(t *testing.T, floor int64) {
	t.Helper()
	var want []string
	for index := range items {
		for run := range groupSize {
			want = append(want, rl.TaskID(0, index, run))
		}
	}
	deaths := 0
	for dieAt := int64(1); ; dieAt += int64(*stride) {
		s := &script{t: t, dir: t.TempDir(), floor: floor, begun: map[string]bool{}}
		s.run(dieAt)
		if !slices.Equal(s.tasks, want) {
			t.Fatalf("killed at step %d: trained on %q, want %q", dieAt, s.tasks, want)
		}
		checkNotes(t, s, dieAt)
		if t.Failed() {
			t.Fatalf("killed at step %d", dieAt)
		}
		if !s.died {
			break
		}
		deaths++
	}
	if deaths < 5 {
		t.Errorf("%d deaths; want the whole run to be covered", deaths)
	}
	t.Logf("%d deaths", deaths)
}

// checkNotes checks that each batch was reported, and twice only if the process died on the way.
func checkNotes(t *testing.T, s *script, dieAt int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "notified"))
	if err != nil {
		t.Fatal(err)
	}
	reported := strings.Fields(string(text))
	if got := slices.Compact(slices.Clone(reported)); !slices.Equal(got, s.ids) || len(reported) > len(s.ids)+1 {
		t.Errorf("killed at step %d: reported %q, want %q", dieAt, reported, s.ids)
	}
	if !s.died && len(reported) != len(s.ids) {
		t.Errorf("without a death: reported %q, want each once", reported)
	}
}
