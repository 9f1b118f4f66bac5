package main

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// crowdConfig has as many jobs as there are processes. A job that starts adds
// a line to starts.
const crowdConfig = `
job "each" {
  for_each = toset([for i in range(%d) : format("k%%02d", i)])
  command  = ["sh", "-c", "echo $0 >> %s", each.key]
}
`

const crowd = 32

// TestCrowd lets 32 processes apply different changes to one stack at once. Half
// of them wait for their turn and succeed; the others succeed or are told who is
// working. The changes that were accepted are carried out one after the other,
// each once, and no other.
func TestCrowd(t *testing.T) {
	t.Run("directory", func(t *testing.T) { proveCrowd(t, newProofStack(t, nil), nil) })
	t.Run("bucket", func(t *testing.T) {
		bucket := newEmulator(t)
		turnedAway := make(chan struct{})
		// The first one works until another was rejected because of it.
		var waited atomic.Bool
		between := func(_ http.ResponseWriter, r *http.Request) bool {
			if isPut(r, store.StateKey) {
				waited.Store(true)
				select {
				case <-turnedAway:
				case <-r.Context().Done():
				}
			}
			return false
		}
		bucket.between.Store(&between)
		proveCrowd(t, newProofStack(t, bucket), turnedAway)
		if !waited.Load() {
			t.Error("no write of the state was kept waiting: that others are turned away meanwhile is not proved")
		}
	})
}

// member is one of the processes.
type member struct {
	key   string
	waits bool
	cmd   *exec.Cmd
	end   ending
}

func (m *member) accepted() bool { return m.end.code == 0 }

// proveCrowd closes turnedAway, unless it is nil, at the first rejection.
func proveCrowd(t *testing.T, s *proofStack, turnedAway chan struct{}) {
	s.write(t, fmt.Sprintf(crowdConfig, crowd, filepath.Join(s.dir, "starts")))
	members := make([]*member, crowd)
	for i := range members {
		m := &member{key: fmt.Sprintf("k%02d", i), waits: i%2 == 0}
		args := []string{"apply", "--auto-approve", fmt.Sprintf("--target=job.each[%q]", m.key)}
		if m.waits {
			args = append(args, "--lease-timeout=10m")
		}
		m.cmd = s.command(t, nil, args...)
		members[i] = m
	}
	var all sync.WaitGroup
	var told sync.Once
	for _, m := range members {
		all.Go(func() {
			var err error
			if m.end, err = endingOf(m.cmd); err != nil {
				t.Error(err)
			}
			if !m.accepted() && turnedAway != nil {
				told.Do(func() { close(turnedAway) })
			}
		})
	}
	all.Wait()
	var accepted []string
	for _, m := range members {
		if m.accepted() {
			accepted = append(accepted, m.key)
		} else if err := m.toldWhoWorks(members); err != nil {
			t.Errorf("the apply of %s: %v", m.key, err)
		}
	}
	t.Logf("%d changes were accepted, %d of them without waiting; %d were turned away",
		len(accepted), len(accepted)-crowd/2, crowd-len(accepted))
	if turnedAway != nil && len(accepted) == crowd {
		t.Error("no apply was turned away")
	}
	showSerialized(t, s, accepted)
	s.must(t, "apply", "--auto-approve")           // nothing keeps the others out for good
	if err := within(proofPatience, func() error { // what runs has not said so yet
		if got := startsOf(t, s); len(got) != crowd {
			return fmt.Errorf("after an apply of everything these were started: %q; want each of %d once", got, crowd)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	s.must(t, "plan", "--detailed-exitcode")
	s.must(t, "destroy", "--auto-approve")
}

var whoWorks = regexp.MustCompile(`\S+@\S+ \(pid (\d+), fray apply\) has been changing this stack`)

// toldWhoWorks returns what is wrong with the message of a rejected apply.
func (m *member) toldWhoWorks(members []*member) error {
	match := whoWorks.FindStringSubmatch(m.end.stderr)
	if m.waits || m.end.code != terminal.ExitError || match == nil {
		return fmt.Errorf("want success, or without --lease-timeout exit code %d and who works; got %v", terminal.ExitError, m.end)
	}
	worker, err := strconv.Atoi(match[1])
	if err != nil {
		return err
	}
	for _, other := range members {
		if other.cmd.Process.Pid == worker && other.accepted() && other != m {
			return nil
		}
	}
	return fmt.Errorf("pid %d is named, and that did not work: %v", worker, m.end)
}

// showSerialized shows that the accepted changes, and no other, were made one
// after the other: each under an epoch of its own, from what the one before
// left, losing nothing of it.
func showSerialized(t *testing.T, s *proofStack, accepted []string) {
	t.Helper()
	documents := s.documents(t)
	for i := range documents[1:] {
		if err := descends(&documents[i], &documents[i+1]); err != nil {
			t.Errorf("version %d of %d: %v", i+1, len(documents), err)
		}
	}
	last := documents[len(documents)-1]
	if first := documents[0]; s.bucket != nil && (first.Serial != 1 || first.Epoch != 1) {
		t.Errorf("the oldest version has serial %d and epoch %d, want 1 and 1", first.Serial, first.Epoch)
	}
	if last.Epoch != uint64(len(accepted)) || last.Revision != uint64(len(accepted)) {
		t.Errorf("the state has epoch %d and revision %d, want %d accepted changes", last.Epoch, last.Revision, len(accepted))
	}
	if got := desiredKeys(&last); !slices.Equal(got, accepted) {
		t.Errorf("the state declares %q, want what was accepted: %q", got, accepted)
	}
	if err := within(proofPatience, func() error { // what runs has not said so yet
		if got := startsOf(t, s); !slices.Equal(got, accepted) {
			return fmt.Errorf("started were %q, want what was accepted, each once: %q", got, accepted)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// descends returns what is wrong between a version of the state and the next.
func descends(before, after *state.Document) error {
	var errs []error
	if after.Serial != before.Serial+1 || after.Lineage != before.Lineage {
		errs = append(errs, fmt.Errorf("serial %d of %s follows serial %d of %s", after.Serial, after.Lineage, before.Serial, before.Lineage))
	}
	changes := 0
	if after.Epoch != before.Epoch {
		changes = 1
	}
	if after.Epoch != before.Epoch+uint64(changes) || after.Revision != before.Revision+uint64(changes) {
		errs = append(errs, fmt.Errorf("epoch %d and revision %d follow %d and %d", after.Epoch, after.Revision, before.Epoch, before.Revision))
	}
	lost := slices.DeleteFunc(desiredKeys(before), func(key string) bool { return slices.Contains(desiredKeys(after), key) })
	if len(lost) > 0 || len(desiredKeys(after)) != len(desiredKeys(before))+changes {
		errs = append(errs, fmt.Errorf("%q follows %q", desiredKeys(after), desiredKeys(before)))
	}
	for addr := range before.Jobs {
		if after.Jobs[addr] == nil {
			errs = append(errs, fmt.Errorf("%s is lost", addr))
		}
	}
	return errors.Join(errs...)
}

func desiredKeys(d *state.Document) []string {
	var keys []string
	for i := range d.Desired.Jobs {
		keys = append(keys, instanceKey(d.Desired.Jobs[i].Addr))
	}
	slices.Sort(keys)
	return keys
}

// instanceKey is the k of job.each["k"].
func instanceKey(a schema.Address) string {
	_, key, _ := strings.Cut(a.String(), `["`)
	return strings.TrimSuffix(key, `"]`)
}

func startsOf(t *testing.T, s *proofStack) []string {
	t.Helper()
	lines, err := s.lines("starts")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}
