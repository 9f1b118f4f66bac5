package roles_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
)

// stride is how many steps lie between two deaths of a role that are tried; `make soak` tries more of them.
var stride = flag.Int64("kill.stride", 23, "steps of a role's journal between two deaths that are tried")

var first = flag.Int64("kill.first", 1, "the first step at which a death is tried")

// child is a process that hosts roles; ended has how it ended, once.
type child struct {
	orders io.Closer // its end is the child's
	stdin  *json.Encoder
	ended  chan error
}

// cluster is a run whose roles in Go are processes.
type cluster struct {
	*stage
	document string
	children []*child // those that live
}

// start starts a process and has all know where its actors are. The error is how it ended if it did before it served.
func (c *cluster) start(o childOrders) (*child, error) {
	c.t.Helper()
	o.Document = c.document
	text, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	command := exec.CommandContext(c.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+string(text))
	command.Stderr = c.t.Output()
	stdin, err := command.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	p := &child{orders: stdin, stdin: json.NewEncoder(stdin), ended: make(chan error, 1)}
	var served []resolver.Endpoint
	line, problem := bufio.NewReader(stdout).ReadBytes('\n')
	over := make(chan struct{})
	go func() { defer close(over); p.ended <- ending(command.Wait()) }()
	c.t.Cleanup(func() { <-over }) // its context has ended
	if problem != nil {
		how := <-p.ended
		p.ended <- how
		return p, how // nil: the run has ended, so that nothing is served
	}
	if err := json.Unmarshal(line, &served); err != nil {
		c.t.Fatal(err)
	}
	c.children = append(c.children, p)
	for _, actor := range served {
		c.names.Set(actor.Name, actor)
	}
	c.introduce()
	return p, nil
}

// introduce has every process know where all actors are.
func (c *cluster) introduce() {
	c.t.Helper()
	actors, err := c.client.List(c.t.Context(), "")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range c.children {
		_ = p.stdin.Encode(actors) // one that has ended is noticed elsewhere
	}
}

// errKilled is a process that was killed.
var errKilled = errors.New("it was killed")

// ending is how a process has ended: errKilled if it killed itself as it was ordered to.
func ending(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return errKilled
		}
	}
	return err
}

// run leads a run to its end in which the process of one role is killed at a step of its journal, and started again. It
// reports whether it came to that.
func (c *cluster) run(victim string, dieAt int64) (killed bool) {
	c.t.Helper()
	c.workers(2)
	var others []string
	for _, role := range goRoles() {
		if role != victim {
			others = append(others, role)
		}
	}
	rest, err := c.start(childOrders{Roles: others})
	if err != nil {
		c.t.Fatal(err)
	}
	one, err := c.start(childOrders{Roles: []string{victim}, DieAt: dieAt})
	if killed = errors.Is(err, errKilled); killed {
		one = c.again(victim)
	}
	deadline := time.After(patience)
	for open := 2; open > 0; {
		select {
		case err := <-one.ended:
			if errors.Is(err, errKilled) && !killed {
				killed, one = true, c.again(victim)
				continue
			}
			if err != nil {
				c.t.Fatalf("%s has ended by %v", victim, err)
			}
			open--
			if victim == "controller" {
				_ = rest.orders.Close() // the run is over, also if these have not heard of it
			}
		case err := <-rest.ended:
			if err != nil {
				c.t.Fatalf("%q have ended by %v", others, err)
			}
			open--
			if victim != "controller" {
				_ = one.orders.Close() // likewise
			}
		case <-deadline:
			status, err := c.peers.Call(c.t.Context(), "controller", "status")
			loader, _ := c.peers.Call(c.t.Context(), "data_loader", "status")
			validation, _ := c.peers.Call(c.t.Context(), "validate_dataloader", "status")
			c.t.Fatalf("the run does not end: %v (%v); the loader %v, that of validation %v", status, err, loader, validation)
		}
	}
	return killed
}

func (c *cluster) again(victim string) *child {
	c.t.Helper()
	p, err := c.start(childOrders{Roles: []string{victim}})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// Each role in Go is killed, in a process of its own, before and after what it writes to its journal: at each
// acknowledgement. The next process goes on from the journal, which is in a store. Nothing that was acknowledged is lost,
// nothing counts twice: the run is the same as without.
func TestARunSurvivesAKillAtEachAcknowledgement(t *testing.T) {
	for _, victim := range goRoles() {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			deaths := 0
			for dieAt := *first; ; dieAt += *stride {
				if !survives(t, victim, dieAt) {
					break
				}
				deaths++
			}
			if deaths == 0 {
				t.Error("the role was never killed")
			}
			t.Logf("%d deaths", deaths)
		})
	}
}

const (
	killSteps   = 3
	killSamples = 2 // of a validation
)

// survives runs a run with a death, and reports whether the role died.
func survives(t *testing.T, victim string, dieAt int64) (died bool) {
	t.Helper()
	t.Run("", func(t *testing.T) {
		out := t.TempDir()
		text := document(t, out, map[string]any{
			"journal":         "gs://bucket/run",
			"data":            map[string]any{"type": "mock", "num_samples": 2 * killSteps, "batch_size": 2, "repeat_item": 2, "keep_batch_order": true},
			"rollout_worker":  map[string]any{"num_workers": 3},
			"trajectory_pool": map[string]any{"key_list": []string{"group_id"}, "group_size": 2, "batch_size": 4, "check_batch_ready_function": "loaded_batch_finished"},
			"train_worker":    map[string]any{"total_train_steps": killSteps},
			"validate":        map[string]any{"validate_before_train": true, "data": map[string]any{"type": "mock", "num_samples": killSamples}},
			"weight":          map[string]any{"sync_mode": "sync", "validate_freq": 1},
		})
		c := &cluster{stage: newStage(t, text), document: text}
		died = c.run(victim, dieAt)
		c.checkBatches(2*2, killSteps)
		c.checkMetrics(filepath.Join(out, "metrics", "metrics.jsonl"))
		if t.Failed() {
			t.Fatalf("%s was killed at step %d of its journal", victim, dieAt)
		}
	})
	return died && !t.Failed()
}

// checkMetrics checks that each update, and each validation, was logged once.
func (c *cluster) checkMetrics(path string) {
	c.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	var updates, validations []int64
	for line := range lines(text) {
		var r struct {
			Step int64
			Data map[string]float64
		}
		if err := json.Unmarshal(line, &r); err != nil {
			c.t.Fatal(err)
		}
		if _, ok := r.Data["loss"]; ok {
			updates = append(updates, r.Step)
			continue
		}
		if r.Data["val/num_samples"] != killSamples || r.Data["val/reward"] != 0.5 {
			c.t.Errorf("the validation at step %d has %v", r.Step, r.Data)
		}
		validations = append(validations, r.Step)
	}
	if want := []int64{1, 2, 3}; !slices.Equal(updates, want) {
		c.t.Errorf("updates %d are logged, want %d", updates, want)
	}
	if want := []int64{0, 1, 2, 3}; !slices.Equal(validations, want) {
		c.t.Errorf("validations at steps %d are logged, want %d", validations, want)
	}
}
