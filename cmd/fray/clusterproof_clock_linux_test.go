package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/checksum"
	"github.com/fray-ml/fray/state/store"
)

// skew is how wrong clocks are, in seconds.
const skew = 600

// talker is a job that writes all the time.
const talker = `
job "talker" {
  command = ["sh", "-c", "while :; do echo tick; sleep 0.2; done"]
}
`

// TestClusterClocks runs agents, controllers and commands whose clocks are wrong
// by ten minutes, each in its own direction: the clock of the process, so that
// everything in it is wrong. No host counts as silent, a lease that is renewed is not
// taken over, no token is refused, what is preempted is made again, and who
// is dead is replaced by one whose clock is right.
func TestClusterClocks(t *testing.T) {
	needsFray(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the clock of a process can be shifted on amd64 only")
	}
	t.Parallel()
	program := shiftedFray(t)
	for _, c := range []struct {
		name          string
		agents, first int
	}{
		{"hosts ahead, leader behind", skew, -skew},
		{"hosts behind, leader ahead", -skew, skew},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bucket := emulatorWith(t, false)
			bucket.eachProcessAMachine()
			s := newProofStack(t, bucket)
			s.program = program
			s.env = append(s.env, clocks(c.agents, c.first, 0))
			p := &clockProof{clusterProof: s.cluster(t, 3), agents: c.agents}
			p.run(t, c.first)
		})
	}
}

// shiftedFray builds the program whose clock can be wrong.
func shiftedFray(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fray")
	files := []string{"clockshift_linux_amd64.go", "clockshift_linux_amd64.s"}
	if err := buildRigged(path, files, nil, "-ldflags", "-checklinkname=0"); err != nil {
		t.Fatalf("with a clock that can be wrong: %v", err)
	}
	return path
}

// clocks says by how many seconds the clocks of processes are wrong.
func clocks(agents, watch, cli int) string {
	return fmt.Sprintf("SHIFTED_CLOCKS=agent=%d,watch=%d,cli=%d", agents, watch, cli)
}

type clockProof struct {
	*clusterProof
	agents int
}

func (p *clockProof) run(t *testing.T, leader int) {
	first := p.watch(t).Process.Pid
	p.awaitLeader(t, 0)
	p.watch(t, clocks(p.agents, 0, 0))
	p.allow(t, "go-child-0")
	p.awaitNote(t, "told", "registered child-0 1")
	epoch := p.lease(t).Epoch
	if here, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil || p.lease(t).BootID == strings.TrimSpace(string(here)) {
		t.Fatalf("the leader counts as of this machine, whose clock is another one: the proof proves nothing (%v)", err)
	}

	plain, err := os.ReadFile(filepath.Join(p.dir, "fray.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	writeConfig(t, p.dir, string(plain)+talker)
	p.says(t, -skew, "Handed over", "apply", "--auto-approve")
	for _, cli := range []int{-skew, skew} {
		p.commands(t, cli)
	}
	p.awaitRenewals(t, 6) // two lives of a lease
	lease := p.lease(t)
	if lease.PID != first || lease.Epoch != epoch {
		t.Errorf("pid %d leads with epoch %d, want %d with %d, which has renewed its lease", lease.PID, lease.Epoch, first, epoch)
	}
	p.isOff(t, "the leader", lease.RenewedAt, leader)
	p.isOff(t, "a host", p.hosts(t)[0].At, p.agents)

	// Preempted, and made again.
	p.allow(t, "go-child-1")
	r := p.host(t, p.pid(t, "child-1", 1))
	p.awaitNote(t, "told", "registered child-1 1")
	notice := filepath.Join(p.dir, ".fray", "local", "slices", r.Slice, "hosts", fmt.Sprint(r.Host), "preempted")
	if err := os.WriteFile(notice, []byte("needed elsewhere"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.awaitNote(t, "told", "registered child-1 2")

	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.awaitLeader(t, first)
	p.allow(t, "go-child-2")
	p.awaitNote(t, "told", "registered child-2 1")
	for _, cli := range []int{-skew, skew} {
		p.says(t, cli, "in", "exec", "job.parent", "--", "echo", "in")
	}
	writeConfig(t, p.dir, string(plain))
	p.says(t, skew, "Handed over", "apply", "--auto-approve")
	p.noneRefused(t)
	p.finish(t, map[string]int{"child-1": 2})
}

// says runs a command by another clock and looks for a text in what it prints.
func (p *clockProof) says(t *testing.T, cli int, want string, args ...string) {
	t.Helper()
	got, err := p.proofStack.run(t, []string{clocks(p.agents, 0, cli)}, args...)
	if err != nil {
		t.Fatal(err)
	}
	if got.code != 0 || !strings.Contains(got.stdout+got.stderr, want) {
		t.Errorf("by a clock off by %d s, fray %s: want %q, got %v", cli, strings.Join(args, " "), want, got)
	}
}

// commands runs all kinds of commands by another clock.
func (p *clockProof) commands(t *testing.T, cli int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.says(t, cli, "job.parent", "status")
	p.says(t, cli, "held", "state", "lease")
	p.says(t, cli, "in", "exec", "job.parent", "--", "echo", "in")
	p.says(t, cli, "at-parent is at 127.0.0.1:1", "run", "--", self, clusterTaskWord, "look", p.notes, "at-parent")

	cmd := p.command(t, []string{clocks(p.agents, 0, cli)}, "logs", "-f", "job.talker")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := p.logCalls(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ticks := bufio.NewScanner(out)
	if err := within(proofPatience, func() error {
		if ticks.Scan(); !strings.Contains(ticks.Text(), "tick") {
			return fmt.Errorf("logs -f by a clock off by %d s printed %q: %s", cli, ticks.Text(), &errs)
		}
		if p.logCalls(t) == began {
			return fmt.Errorf("no host was asked for logs by a clock off by %d s", cli)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill() // it has no end of its own
	_ = cmd.Wait()
}

// agentLogs are what all agents have said.
func (p *clockProof) agentLogs(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, ".fray", "local", "slices", "*", "hosts", "*", "agent.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found the agents' logs %q: %v", files, err)
	}
	var all strings.Builder
	for _, file := range files {
		data, _ := os.ReadFile(file) // gone with its slice
		all.Write(data)
	}
	return all.String()
}

// logCalls is how often hosts were asked for logs.
func (p *clockProof) logCalls(t *testing.T) int {
	t.Helper()
	return len(regexp.MustCompile(`msg=call .*Host/Logs`).FindAllString(p.agentLogs(t), -1))
}

func (p *clockProof) noneRefused(t *testing.T) {
	t.Helper()
	said := p.agentLogs(t)
	for _, watch := range []string{"watch-0.log", "watch-1.log"} {
		said += strings.Join(p.noted(watch, ""), "\n")
	}
	for line := range strings.Lines(said) {
		if strings.Contains(line, "refused") && strings.Contains(line, "expired") {
			t.Errorf("a token was refused: %s", line)
		}
	}
}

// isOff shows that a time was told by a clock that is wrong.
func (p *clockProof) isOff(t *testing.T, whose string, told time.Time, want int) {
	t.Helper()
	if off := int(told.Unix() - time.Now().Unix()); off < want-skew/2 || off > want+skew/2 {
		t.Errorf("by the clock of %s it is %d s from now, want about %d: the proof proves nothing", whose, off, want)
	}
}

// eachProcessAMachine makes leases name another boot for each process.
func (e *emulator) eachProcessAMachine() {
	declared := regexp.MustCompile(`("crc32c":")[^"]*"`)
	boot := regexp.MustCompile(`("boot_id": "[^"]*)[^"]{9}"`)
	pid := regexp.MustCompile(`"pid": (\d+)`)
	between := func(_ http.ResponseWriter, r *http.Request) bool {
		if !isPut(r, store.LeaseKey) {
			return false
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		lease := uploaded(r)
		found := pid.FindSubmatch(lease)
		if err != nil || found == nil {
			return false
		}
		object, standing := checksum.Cut(lease)
		moved := boot.ReplaceAll(object, fmt.Appendf(nil, `${1}%09s"`, found[1]))
		if standing == checksum.Valid {
			if moved, err = checksum.Append(moved); err != nil {
				return false
			}
		}
		sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(moved, crc32.MakeTable(crc32.Castagnoli)))
		body = bytes.Replace(body, lease, moved, 1)
		body = declared.ReplaceAll(body, []byte("${1}"+base64.StdEncoding.EncodeToString(sum)+`"`))
		r.Body = io.NopCloser(bytes.NewReader(body))
		return false
	}
	e.between.Store(&between)
}

// lease is the one in the store.
func (p *clusterProof) lease(t *testing.T) store.Lease {
	t.Helper()
	st, err := p.store(t)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.ReadLease(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// awaitRenewals waits until the lease was written some more times.
func (p *clusterProof) awaitRenewals(t *testing.T, n int) {
	t.Helper()
	last, seen := p.lease(t).Nonce, 0
	if err := within(proofPatience, func() error {
		if now := p.lease(t).Nonce; now != last {
			last = now
			seen++
		}
		if seen < n {
			return fmt.Errorf("the lease was renewed %d times", seen)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
