package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// faultWorkload is a job that ends and one that runs on after it, each of which
// records that it starts. Nothing of it ends by itself once it is applied, so that
// a plan after that has nothing to do.
const faultWorkload = `
job "two" {
  command = ["sh", "-c", "echo $$ >> %[1]s/two"]
}
job "one" {
  command    = ["sh", "-c", "echo $$ >> %[1]s/one; exec sleep 1000"]
  depends_on = [job.two]
}
`

// faultStack is one stack in the bucket, and what came between.
type faultStack struct {
	*proofStack
	between *faultyBucket
	servers []*httptest.Server
	direct  store.Store // past the faults
	acted   []bucketRequest
}

func newFaultStack(t *testing.T, service http.Handler, program string) (*faultStack, error) {
	s := &faultStack{proofStack: &proofStack{dir: t.TempDir(), program: program}}
	s.between = &faultyBucket{service: service, prefix: s.prefix()}
	s.bucket = &emulator{Server: httptest.NewServer(s.between)}
	past := httptest.NewServer(service)
	s.servers = []*httptest.Server{s.bucket.Server, past}
	s.env = s.bucket.environ()
	var err error
	s.direct, err = bucket.Open(t.Context(), bucket.Config{
		Bucket: emulatedBucket, Prefix: s.prefix(), Endpoint: past.URL + "/storage/v1/", WriteInterval: time.Millisecond, HTTPClient: &http.Client{},
	})
	if err != nil {
		s.close(t)
		return nil, err
	}
	s.write(t, fmt.Sprintf(faultWorkload, s.dir))
	return s, nil
}

// close ends what runs and removes what is left, so that many can follow.
func (s *faultStack) close(t *testing.T) {
	endProcesses(s.dir)
	if s.direct != nil {
		if left, err := s.direct.List(context.WithoutCancel(t.Context()), ""); err == nil {
			for _, object := range left {
				_ = s.direct.Delete(context.WithoutCancel(t.Context()), object.Key) // of a service that all stacks share
			}
		}
	}
	for _, server := range s.servers {
		server.CloseClientConnections()
		server.Close()
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Errorf("remove what is left: %v", err)
	}
}

// faultScenario is something that a fault falls into.
type faultScenario struct {
	name    string
	prepare func(*faultStack, *testing.T) error
	act     func(*faultStack, *testing.T) (ending, error)
}

func faultScenarios() []faultScenario {
	apply := func(s *faultStack, t *testing.T) (ending, error) { return s.fray(t, "apply", "--auto-approve") }
	applied := func(s *faultStack, t *testing.T) error { return well(apply(s, t)) }
	return []faultScenario{
		{name: "apply", prepare: func(*faultStack, *testing.T) error { return nil }, act: apply},
		{name: "takeover", prepare: func(s *faultStack, t *testing.T) error {
			if err := applied(s, t); err != nil {
				return err
			}
			first, err := s.watch(t)
			if err != nil {
				return err
			}
			err = errors.Join(s.leads(t, first), first.cmd.Process.Kill())
			<-first.gone
			return err
		}, act: (*faultStack).takeover},
		{name: "destroy", prepare: applied, act: func(s *faultStack, t *testing.T) (ending, error) {
			return s.fray(t, "destroy", "--auto-approve")
		}},
	}
}

// fray runs a command, which may take as long as a fault that is waited out.
func (s *faultStack) fray(t *testing.T, args ...string) (ending, error) {
	return s.run(t, nil, args...)
}

// well is the error of a command that has to end well.
func well(got ending, err error) error {
	if err == nil && got.code != 0 {
		err = fmt.Errorf("%v", got)
	}
	return err
}

// watching is a running fray watch.
type watching struct {
	cmd  *exec.Cmd
	out  bytes.Buffer  // to be read once it has gone
	gone chan struct{} // closed
}

func (s *faultStack) watch(t *testing.T) (*watching, error) {
	w := &watching{cmd: s.command(t, nil, "watch", "--http", "off"), gone: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.out
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = w.cmd.Wait() // it is killed, or looked at
		close(w.gone)
	}()
	return w, nil
}

// leads waits until a watch has the lease and has written the state under it, or
// has ended.
func (s *faultStack) leads(t *testing.T, w *watching) error {
	return within(proofPatience, func() error {
		select {
		case <-w.gone:
			return nil // told by its ending
		default:
		}
		lease, err := store.ReadLease(t.Context(), s.direct)
		if err != nil {
			return err
		}
		doc, err := s.document(t)
		if err != nil {
			return err
		}
		if lease.PID != w.cmd.Process.Pid || lease.Released || doc.Epoch != lease.Epoch {
			return fmt.Errorf("the lease is that of pid %d, epoch %d, the state's epoch is %d; want pid %d to lead", lease.PID, lease.Epoch, doc.Epoch, w.cmd.Process.Pid)
		}
		return nil
	})
}

func (s *faultStack) document(t *testing.T) (state.Document, error) {
	object, err := s.direct.Get(t.Context(), store.StateKey)
	if err != nil {
		return state.Document{}, err
	}
	return state.Decode(object.Data)
}

// takeover starts a watch after one that was killed, lets it lead for some
// requests, and ends it.
func (s *faultStack) takeover(t *testing.T) (ending, error) {
	w, err := s.watch(t)
	if err != nil {
		return ending{}, err
	}
	if err := s.leads(t, w); err != nil {
		return ending{}, err
	}
	led, _ := s.between.requests()
	if err := within(proofPatience, func() error { return s.tended(t, w, len(led)) }); err != nil {
		return ending{}, err
	}
	signalled := w.cmd.Process.Signal(syscall.SIGINT)
	if signalled != nil && !errors.Is(signalled, os.ErrProcessDone) {
		return ending{}, signalled
	}
	select {
	case <-w.gone:
	case <-time.After(proofPatience):
		return ending{}, errors.New("the watch does not end")
	}
	return ending{stderr: w.out.String(), code: w.cmd.ProcessState.ExitCode()}, nil
}

// tended is nil once a watch that leads has asked for more, job.two has ended
// and has given its slice back; or once the watch has ended.
func (s *faultStack) tended(t *testing.T, w *watching, requests int) error {
	select {
	case <-w.gone:
		return nil
	default:
	}
	if now, _ := s.between.requests(); len(now) < requests+20 {
		return errors.New("the watch that leads asks for nothing")
	}
	doc, err := s.document(t)
	if err != nil {
		return err
	}
	if len(doc.Slices) != 1 {
		return fmt.Errorf("%d slices are left, want that of job.one", len(doc.Slices))
	}
	return nil
}

// try carries a scenario out with a fault and holds what must be true then.
func (s *faultStack) try(t *testing.T, scenario faultScenario, p faultPoint) (out faultOutcome) {
	if err := scenario.prepare(s, t); err != nil {
		return faultOutcome{err: fmt.Errorf("prepare: %w", err)}
	}
	s.between.record(p.at, p.fault)
	began := time.Now()
	got, err := scenario.act(s, t)
	s.acted, out.happened = s.between.requests()
	s.between.record(bucketRequest{}, "")
	switch {
	case err != nil:
		out.err = fmt.Errorf("after %v: %w", time.Since(began), err)
	case got.code != 0 && (p.fault == "" || strings.TrimSpace(got.stderr) == ""):
		out.err = fmt.Errorf("it fails without saying why: %v", got)
	case got.code != 0:
		out.again = true
		t.Logf("%s: %s at %s: exit code %d, then again: %s", scenario.name, p.fault, p.at, got.code, lastLine(got.stderr))
		again, err := scenario.act(s, t)
		if err := well(again, err); err != nil {
			out.err = fmt.Errorf("the next run fails as well: %w\nthe first: %v", err, got)
		}
	}
	if out.err == nil {
		out.err = s.converged(t, scenario)
	}
	if out.err != nil && got.code == 0 {
		out.err = fmt.Errorf("%w\nthe command: %v", out.err, got)
	}
	return out
}

// converged holds that nothing is left to do, and that a destroy leaves nothing.
func (s *faultStack) converged(t *testing.T, scenario faultScenario) error {
	if scenario.name != "destroy" {
		if err := s.settled(t); err != nil {
			return err
		}
		if err := well(s.fray(t, "destroy", "--auto-approve")); err != nil {
			return fmt.Errorf("destroy: %w", err)
		}
	}
	return s.nothingLeft(t)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// settled holds that what was asked for is there, and that nothing is left to do.
func (s *faultStack) settled(t *testing.T) error {
	if err := within(proofPatience, func() error { return s.startedOnce("one", "two") }); err != nil {
		return err
	}
	if err := s.planIsEmpty(t); err != nil {
		return err
	}
	doc, err := s.document(t)
	if err != nil {
		return err
	}
	if len(doc.Jobs) != 2 {
		return fmt.Errorf("the state has %d jobs, want 2", len(doc.Jobs))
	}
	return nil
}

// planIsEmpty holds that there is nothing to do, at once.
func (s *faultStack) planIsEmpty(t *testing.T) error {
	got, err := s.fray(t, "plan", "--detailed-exitcode")
	if err == nil && got.code != 0 {
		err = fmt.Errorf("the plan is not empty: %v", got)
	}
	return err
}

// startedOnce holds that jobs started once, by what they wrote.
func (s *faultStack) startedOnce(jobs ...string) error {
	for _, name := range jobs {
		lines, err := s.lines(name)
		if err != nil {
			return err
		}
		if len(lines) != 1 {
			return fmt.Errorf("job.%s was started %d times, want once", name, len(lines))
		}
	}
	return nil
}

// nothingLeft holds that a destroyed stack has no jobs, no processes and no lock.
func (s *faultStack) nothingLeft(t *testing.T) error {
	if err := s.startedOnce("one", "two"); err != nil {
		return err
	}
	doc, err := s.document(t)
	if err != nil {
		return err
	}
	if len(doc.Jobs)+len(doc.Slices) > 0 {
		return fmt.Errorf("the state has %d jobs and %d slices after destroy", len(doc.Jobs), len(doc.Slices))
	}
	lease, err := store.ReadLease(t.Context(), s.direct)
	if err != nil {
		return err
	}
	if !lease.Released && time.Now().Before(lease.ExpiresAt) && !strings.Contains(lease.Command, "destroy") {
		data, _ := json.Marshal(lease)
		return fmt.Errorf("the lease is not free: %s", data)
	}
	return within(proofPatience, func() error {
		if left := processes(s.dir); len(left) > 0 {
			return fmt.Errorf("%d processes are left: %v", len(left), left)
		}
		return nil
	})
}
