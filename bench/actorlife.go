package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/sleep"
)

// hosted is how often a Python process that hosts an actor is started.
const hosted = 7

// actorLife measures how long it takes until actors are there: created, restarted
// and moved.
func (b actorBench) actorLife() error {
	python, err := b.python()
	if err != nil {
		return err
	}
	if err := b.hosting(python); err != nil {
		return err
	}
	return b.clusterLife(python)
}

// hosting measures from the start of a Python process to the first answer of the
// actor that it hosts, beside the interpreter's own start.
func (b actorBench) hosting(python string) error {
	var hosts, bare []time.Duration
	for range hosted {
		began := time.Now()
		if err := exec.CommandContext(b.ctx, python, "-c", "pass").Run(); err != nil {
			return err
		}
		bare = append(bare, time.Since(began))
		took, err := b.hostOnce(python)
		if err != nil {
			return err
		}
		hosts = append(hosts, took)
	}
	slices.Sort(hosts)
	slices.Sort(bare)
	own := bare[len(bare)/2]
	b.row("an actor in a new Python process, to its first answer", ms(hosts[len(hosts)/2]-own), "< 600 ms",
		fmt.Sprintf("beyond the interpreter's own start of %s; longest %s", ms(own), ms(hosts[len(hosts)-1]-own)))
	return nil
}

func (b actorBench) hostOnce(python string) (time.Duration, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(b.ctx, python, "-m", "fray.host")
	cmd.Dir, cmd.Stderr = filepath.Join(b.root, "bench", "actors"), os.Stderr
	cmd.Env = append(os.Environ(), "PYTHONPATH=.", "FRAY_ACTOR_CLASS=life:Counter", "FRAY_ACTOR_ARGS={}", `FRAY_ACTOR_NAMES=["counter"]`,
		"FRAY_PORT_ACTOR="+strconv.Itoa(port))
	names, err := resolver.NewFixed(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	defer func() { _ = client.Close() }()
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	// Clients pause between attempts to connect; what is measured is the actor.
	for ; ; sleep.For(b.ctx, 2*time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Since(began) > time.Minute {
			return 0, fmt.Errorf("the actor's host does not listen: %w", err)
		}
	}
	handle, err := client.Lookup(b.ctx, "counter")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	_, err = actorrpc.Call[int](ctx, handle, "pid")
	return time.Since(began), err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(errors.New("no TCP address"), l.Close())
	}
	return address.Port, l.Close()
}

// clusterLife measures actors of a stack that `fray watch` keeps.
func (b actorBench) clusterLife(python string) error {
	programs := filepath.Join(b.root, "bench", "actors")
	// What is launched runs the python that its host finds.
	if err := os.Setenv("PATH", filepath.Dir(python)+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		return err
	}
	config := fmt.Sprintf("job \"mover\" {\n  command = [%q, %q, \"host\"]\n  namespace = namespace.bench\n  environment {\n    env = { PYTHONPATH = %q }\n  }\n}\nnamespace \"bench\" {}\n",
		python, filepath.Join(programs, "life.py"), programs)
	dir, err := b.applied("actorlife", config)
	if err != nil {
		return err
	}
	end, err := clusterBench(b).watched(dir)
	if err != nil {
		return err
	}
	defer end()
	cmd := b.command(dir, "run", "--namespace", "bench", "--", python, filepath.Join(programs, "life.py"), "client")
	cmd.Env = append(cmd.Env, "PYTHONPATH="+programs, "FRAY_NAMESPACE=bench")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("life.py client: %w\n%s", err, tail(said.String()))
	}
	got := map[string]float64{}
	for line := range strings.Lines(string(out)) {
		var t telling
		if json.Unmarshal([]byte(line), &t) == nil {
			got[t.Row] = t.Value
		}
	}
	in := func(row string) string { return ms(time.Duration(got[row] * float64(time.Second))) }
	b.row("an actor in a process that runs, registered with the cluster", in("created p50"), "< 10 ms", "p95 "+in("created p95"))
	b.row("create_actor: a job of its own on a new local slice, to its first answer", in("launched p50"), "< 300 ms beside the start of Python", "")
	b.row("from the end of a move to the first call answered there", in("moved p50"), "< 100 ms", "longest of 20: "+in("moved longest"))
	b.row("from kill -9 of an actor to its first answered call", in("restarted p50"), "< 1 s", "longest of 5: "+in("restarted longest"))
	return nil
}
