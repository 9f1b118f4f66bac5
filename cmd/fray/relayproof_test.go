package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

const gangConfig = `
job "gang" {
  command = ["sh", "-c", "echo $FRAY_ATTEMPT >> ${abspath(path.root)}/starts-$FRAY_TASK_INDEX; while :; do sleep 0.1; done"]
  resources {
    tpu = "v5litepod-16"
  }
  retries {
    failure = 10
  }
}
`

// gangHosts is how many hosts its slice has.
const gangHosts = 4

// TestRelayKilled has the first host of a slice speak for the others, hangs its agent, and
// kills it: the others are live without it, no task starts twice, and the agent that comes back
// relays again. A task's end is known through a relay.
func TestRelayKilled(t *testing.T) {
	t.Parallel()
	s := newProofStack(t, emulatorWith(t, false))
	p := &clusterProof{proofStack: s, notes: t.TempDir(), flags: []string{"--http", "127.0.0.1:0"}}
	p.write(t, gangConfig)
	t.Cleanup(func() { p.explain(t) })
	p.must(t, "apply", "--auto-approve")
	p.watch(t)
	p.awaitLeader(t, 0)
	p.awaitStreams(t, gangHosts, 1)

	relay := p.agent(t, 0)
	if err := syscall.Kill(relay, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.awaitStreams(t, gangHosts-1, 0)
	if err := syscall.Kill(relay, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.awaitStreams(t, gangHosts, 1)

	p.kill(t, relay)
	if err := within(proofPatience, func() error {
		if p.agent(t, 0) == relay {
			return fmt.Errorf("host 0 is not served again after pid %d was killed", relay)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.awaitStreams(t, gangHosts, 1)
	for n := range gangHosts {
		if got, err := p.lines(fmt.Sprintf("starts-%d", n)); err != nil || !slices.Equal(got, []string{"1"}) {
			t.Errorf("task %d began attempts %v, %v; want 1 once", n, got, err)
		}
	}

	p.kill(t, p.hostOf(t, 3).Task.PID)
	if err := within(proofPatience, func() error {
		for n := range gangHosts {
			if got, err := p.lines(fmt.Sprintf("starts-%d", n)); err != nil || !slices.Equal(got, []string{"1", "2"}) {
				return fmt.Errorf("task %d began attempts %v, %w; want 2 after 1", n, got, err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// hostOf is the report of a host of the gang.
func (p *clusterProof) hostOf(t *testing.T, host int) state.HostReport {
	t.Helper()
	all := p.hosts(t)
	i := slices.IndexFunc(all, func(r state.HostReport) bool { return r.Host == host && r.Task != nil })
	if i < 0 {
		t.Fatalf("host %d runs nothing: %+v", host, all)
	}
	return all[i]
}

// agent is the process id of the agent of a host.
func (p *clusterProof) agent(t *testing.T, host int) int { return p.hostOf(t, host).PID }

// awaitStreams waits until so many hosts are live by so many streams; 0: by any number.
func (p *clusterProof) awaitStreams(t *testing.T, hosts, streams int) {
	t.Helper()
	begun := time.Now()
	if err := within(proofPatience, func() error {
		st, err := p.store(t)
		if err != nil {
			return err
		}
		lease, err := store.ReadLease(t.Context(), st)
		if err != nil {
			return err
		}
		page, err := pageOf("http://" + strings.TrimPrefix(lease.ControllerHTTP, "http://") + "/metrics")
		if err != nil {
			return err
		}
		live, open := sample(page, "fray_hosts_live"), sample(page, "fray_host_streams")
		if live != hosts || streams > 0 && open != streams {
			return fmt.Errorf("%d hosts are live by %d streams, want %d by %d", live, open, hosts, streams)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d hosts are live after %s", hosts, time.Since(begun).Round(100*time.Millisecond))
}

// sample is a metric without labels, -1 if it is not there.
func sample(page, name string) int {
	for line := range strings.Lines(page) {
		var value int
		if _, err := fmt.Sscanf(line, name+" %d", &value); err == nil {
			return value
		}
	}
	return -1
}
