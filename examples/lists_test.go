package examples

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

var (
	listsFor  = flag.Duration("lists.for", 0, "how long the lists of TestMisreadLists are wrong; 0: it is skipped, as dozens of agents need a processor for minutes")
	listsSeed = flag.Uint64("lists.seed", propertytest.Seed, "how they are wrong; 0: a random seed, which is printed")
	listsTake = flag.Duration("lists.preempt", 0, "how often TestMisreadLists preempts a slice; 0: never")
)

// Each of these runs on slices of its own: nodes of one host and of four, one of them
// by a queued resource, a machine, and a managed instance group.
const listsConfig = `
fray {
  state "local" {
    path = ".fray/lists"
  }
}

job "nodes" {
  count     = 3
  command   = ["sleep", "1000000"]
  resources { tpu = "v5litepod-4" }
}

job "large" {
  command   = ["sleep", "1000000"]
  resources { tpu = "v5litepod-16" }
}

job "queued" {
  command = ["sleep", "1000000"]
  resources {
    tpu          = "v5litepod-4"
    provisioning = "queued"
  }
}

job "machine" {
  command   = ["sleep", "1000000"]
  resources { cpu = 1 }
}

job "group" {
  command = ["sleep", "1000000"]
  resources {
    tpu    = "v5p-32"
    zones  = ["us-central1-a"]
    engine = "gce"
  }
}
`

// TestMisreadLists runs real programs on an emulated cloud whose lists are empty,
// short, old, out of order, slow or poisoned by a copy: no live slice is deleted, and
// no job begins again, but on the slices that are really preempted.
func TestMisreadLists(t *testing.T) {
	if *listsFor == 0 {
		t.Skip("make soak runs it, for minutes; package rehearse has the same faults on a virtual clock")
	}
	t.Parallel()
	s := newStack(t, "lists.hcl")
	if err := os.WriteFile(filepath.Join(s.dir, s.file), []byte(listsConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	g := s.onGCP()
	s.apply()
	stop := s.watch()
	seed := *listsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	m := &listsMisread{stack: s, gcp: g, dice: rand.New(rand.NewPCG(seed, 1)), slices: g.lives(), gone: map[string]time.Time{}, taken: map[string]int{}, wrong: map[cloud.ListFault]int{}}
	if len(m.slices) != 7 {
		t.Fatalf("there are %d slices, want 7: %v", len(m.slices), m.slices)
	}
	m.run(*listsFor, *listsTake)
	t.Logf("%s: %d live slices were deleted by misreading, lists were wrong %v times, slices were preempted %v times and up again after %v",
		*listsFor, m.lost, m.wrong, m.taken, m.repaired)
	g.Cloud().Abate()
	within(t, listsRepair, "every job runs", func() bool { return m.check(true) })
	stop()
	s.destroy()
}

// lives are the slices that there are, by what they are for.
func (g *gcp) lives() map[string]emulator.WorldGroup {
	lives := map[string]emulator.WorldGroup{}
	for _, group := range g.World().Groups {
		lives[sliceOf(&group)] = group
	}
	return lives
}

// sliceOf names the job and the index that a slice is for: its name without the hash,
// which is another one in each zone.
func sliceOf(group *emulator.WorldGroup) string {
	return group.Name[:strings.LastIndex(group.Name, "-")]
}

// listsMisread is one run of TestMisreadLists.
type listsMisread struct {
	*stack
	*gcp
	dice   *rand.Rand
	slices map[string]emulator.WorldGroup // as they are known to live, see sliceOf
	gone   map[string]time.Time           // slices that are not up again, since when
	taken  map[string]int                 // preemptions by slice
	// repaired is how long it took until slices were up again, in the order of preemptions.
	repaired []time.Duration
	wrong    map[cloud.ListFault]int
	lost     int
}

// run has lists be wrong for a while and looks at the slices meanwhile.
func (m *listsMisread) run(lasts, preempt time.Duration) {
	end := time.Now().Add(lasts)
	next, take := time.Now(), time.Now().Add(preempt)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for now := time.Now(); now.Before(end); now = <-tick.C {
		if now.After(next) {
			next = now.Add(m.misread())
		}
		if preempt > 0 && now.After(take) && len(m.gone) == 0 {
			m.take()
			take = now.Add(preempt)
		}
		m.look()
	}
	m.check(false)
}

// misread has some lists be wrong, mostly a few and at times all for over a minute,
// and returns when to do so again.
func (m *listsMisread) misread() time.Duration {
	faults, lists := cloud.ListFaults(), append(cloud.ListNames(), "")
	fault, of := faults[m.dice.IntN(len(faults))], lists[m.dice.IntN(len(lists))]
	lasts, times := time.Duration(1+m.dice.IntN(5))*time.Second, 1+m.dice.IntN(4)
	if m.dice.IntN(10) == 0 {
		lasts, times = time.Duration(60+m.dice.IntN(60))*time.Second, 0
	}
	m.wrong[fault]++
	m.must(m.Cloud().MisreadList(fault, of, "", times, lasts))
	return time.Duration(m.dice.Int64N(int64(3 * time.Second)))
}

// listsRepair is how long a slice that was preempted may take to be up again while
// lists are wrong nearly all the time, on a machine that is busy with other work: up to
// five minutes of it are the delay before a job is tried again whose attempts were
// preempted many times in a row, none of them after ten minutes.
const listsRepair = 9 * time.Minute

// take preempts a slice without notice: each in turn.
func (m *listsMisread) take() {
	names := slices.SortedFunc(maps.Keys(m.slices), func(a, b string) int {
		return cmp.Or(m.taken[a]-m.taken[b], strings.Compare(a, b))
	})
	group := m.slices[names[0]]
	key, err := m.Find(group.Name, group.Zone, group.Kind)
	m.must(err)
	if m.Cloud().Preempt(key, false) == nil {
		m.gone[names[0]] = time.Now()
		m.taken[names[0]]++
	}
}

// look counts the slices that were deleted though nothing had become of them, and
// takes the time until one that is gone is up again, wherever that is.
func (m *listsMisread) look() {
	is := map[string]emulator.WorldGroup{}
	for _, group := range m.World().Groups {
		is[group.Name] = group
		name := sliceOf(&group)
		if _, gone := m.gone[name]; gone && group.State == cloud.StateReady && !group.Created.Equal(m.slices[name].Created) {
			m.up(name, &group)
		}
	}
	for name, was := range m.slices {
		group, there := is[was.Name]
		since, gone := m.gone[name]
		switch lives := there && group.State == cloud.StateReady && group.Created.Equal(was.Created); {
		case !gone && !lives:
			m.lost++
			m.gone[name] = time.Now()
			m.stack.t.Errorf("slice %s is %q, there %v, made at %s, want one that lives since %s", was.Name, group.State, there, group.Created, was.Created)
		case gone && time.Since(since) > listsRepair:
			m.gone[name] = time.Now() // it is reported once in that time
			m.stack.t.Errorf("slice %s was preempted at %s and is not up again after %s", name, since, listsRepair)
		}
	}
}

// up notes that a slice is up again.
func (m *listsMisread) up(name string, group *emulator.WorldGroup) {
	took := time.Since(m.gone[name]).Truncate(time.Second)
	m.stack.t.Logf("%s (%s) is up again as %s in %s after %s", name, group.Kind, group.Name, group.Zone, took)
	m.repaired = append(m.repaired, took)
	delete(m.gone, name)
	m.slices[name] = *group
}

// check wants every job to run in the attempt that it began with, one more for each
// preemption; it reports whether they all do, and fails where they cannot any more.
func (m *listsMisread) check(all bool) bool {
	for _, addr := range []string{"job.nodes[0]", "job.nodes[1]", "job.nodes[2]", "job.large", "job.queued", "job.machine", "job.group"} {
		j := m.job(addr)
		if len(m.taken) == 0 && len(j.Attempts) != 1 {
			m.stack.t.Errorf("%s is at attempt %d though none of its slices was taken: %s", addr, len(j.Attempts), fmt.Sprint(j.Attempts))
		}
		if all && (!j.Ready || j.Status != "running") {
			return false
		}
	}
	return true
}

// copyNode makes a node that has all labels and metadata of another one, as people do
// who make one like it.
func (g *gcp) copyNode(key cloud.Key, name string) {
	g.t.Helper()
	of, there := g.Cloud().Group(key)
	if !there {
		g.t.Fatalf("there is no %v", key)
	}
	spec := of.Spec
	spec.Name, spec.Instances = name, nil
	_, err := g.Cloud().Allocate(spec)
	g.must(err)
}

// guestAttributeStatus is what the agent of a node's first machine says of itself to the cloud.
func (g *gcp) guestAttributeStatus(node string) string {
	for _, group := range g.World().Groups {
		if group.Name == node && len(group.Hosts) > 0 {
			return g.Cloud().GuestAttributes(group.Hosts[0].ID)[cloud.GuestAttributeKey{Namespace: "fray", Key: "status"}]
		}
	}
	return ""
}

// conditions is a part of what fray status --json says of providers.
type conditions struct {
	Conditions map[string]struct {
		Unseen *struct {
			Since time.Time `json:"since"`
			Kind  string    `json:"kind"`
			Text  string    `json:"text"`
		} `json:"unseen"`
		Skipped []struct {
			Name   string `json:"name"`
			Reason string `json:"reason"`
		} `json:"skipped"`
	} `json:"conditions"`
}

// TestCopiedNodeAndBlindWatch runs real programs on an emulated cloud. A copy of a node,
// with all its labels and metadata, and so with an agent, disturbs nothing: it is
// skipped and shown, it serves no host, and what is preempted beside it is made again.
// A watch that cannot list says so, in its log and to fray status, until it can.
func TestCopiedNodeAndBlindWatch(t *testing.T) {
	t.Parallel()
	s := newStack(t, "lists.hcl")
	config, _, _ := strings.Cut(listsConfig, `job "large"`)
	if err := os.WriteFile(filepath.Join(s.dir, s.file), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	g := s.onGCP()
	s.apply()
	log, stop := s.loggedWatch()
	lives := g.World().Groups
	original := lives[0]
	key, err := g.Find(original.Name, original.Zone, original.Kind)
	g.must(err)
	g.copyNode(key, "copied")
	eventually(t, "the copy is shown", func() bool {
		var c conditions
		decode(t, s.run("status", "--json", "-C", s.file), &c)
		skipped := c.Conditions["gcp"].Skipped
		return len(skipped) == 1 && skipped[0].Name == "copied" && skipped[0].Reason == "copy"
	})
	if text := s.run("status", "-C", s.file); !strings.Contains(text, "Skipped: provider gcp lists copied in "+original.Zone) || !strings.Contains(text, "keeps it true") {
		t.Errorf("status says\n%s", text)
	}
	other, err := g.Find(lives[1].Name, lives[1].Zone, lives[1].Kind)
	g.must(err)
	g.must(g.Cloud().Preempt(other, false))
	eventually(t, "what was preempted beside the copy runs again", func() bool {
		again := 0
		for i := range 3 {
			if j := s.job(fmt.Sprintf("job.nodes[%d]", i)); len(j.Attempts) == 2 && j.Ready {
				again++
			}
		}
		return again == 1
	})
	eventually(t, "the copy's agent says that it is one", func() bool {
		return strings.Contains(g.guestAttributeStatus("copied"), "this machine is a copy")
	})

	g.Cloud().SetAPI(cloud.API{Unauthenticated: true})
	eventually(t, "status says that the provider cannot be seen", func() bool {
		text := s.run("status", "-C", s.file)
		return strings.Contains(text, "Provider gcp cannot be seen since ") && strings.Contains(text, "(permission)") && !strings.Contains(text, "keeps it true")
	})
	eventually(t, "the log of watch says so", func() bool { return strings.Contains(log(), "provider gcp cannot be seen: ") })
	g.Cloud().SetAPI(cloud.API{})
	eventually(t, "status says that all is well", func() bool {
		text := s.run("status", "-C", s.file)
		return strings.Contains(text, "keeps it true") && !strings.Contains(text, "cannot be seen")
	})
	eventually(t, "the log of watch says so", func() bool { return strings.Contains(log(), "provider gcp can be seen again") })
	for i := range 3 {
		if j := s.job(fmt.Sprintf("job.nodes[%d]", i)); len(j.Attempts) > 2 {
			t.Errorf("job.nodes[%d] is at attempt %d", i, len(j.Attempts))
		}
	}
	key.Name = "copied" // it is none of the stack's, so that destroy leaves it
	_, err = g.Cloud().Delete(key)
	g.must(err)
	eventually(t, "the copy is gone", func() bool { _, there := g.Cloud().Group(key); return !there })
	stop()
	s.destroy()
}
