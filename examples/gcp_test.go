package examples

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
)

const (
	firstZone, secondZone = "us-west4-a", "us-central1-a"
	bucket                = "acme-fray"
)

// gcp is the emulator that a stack's file is pointed at.
type gcp struct {
	*emulator.Emulator
	t *testing.T
}

// onGCP points an example at an emulated Google Cloud: its state goes into a bucket,
// and its slices are those of the provider gcp.
func (s *stack) onGCP() *gcp {
	s.t.Helper()
	path := filepath.Join(s.dir, s.file)
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(data), "\n}\n") // the fray block
	if !found || !strings.Contains(head, `state "local"`) {
		s.t.Fatalf("%s does not begin with the place of its state:\n%s", s.file, head)
	}
	pointed := `fray {
  state "gcs" {
    bucket = "` + bucket + `"
    prefix = "training"
  }
}

provider "gcp" {
  project = "acme-research"
  zones   = ["` + firstZone + `", "` + secondZone + `"]
}
` + rest
	if err := os.WriteFile(path, []byte(pointed), 0o644); err != nil {
		s.t.Fatal(err)
	}
	e, err := emulator.Open(s.t.Context(), emulator.Site{
		Scenario: cloud.Scenario{Project: "acme-research"},
		Dir:      filepath.Join(s.dir, "cloud"),
		Buckets:  []storage.Bucket{{Name: bucket, Location: "US-WEST4"}},
		Env:      []string{"EXAMPLE_DIR=" + s.dir, "UV_CACHE_DIR=" + uvCache(s.t)}, // else each machine fetches and unpacks JAX
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.end() // while there is a cloud to ask
		s.gone = true
		if err := e.Close(); err != nil {
			s.t.Error(err)
		}
	})
	s.env = append(s.env, "FRAY_GCP_ENDPOINT="+e.URL(), "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"))
	return &gcp{Emulator: e, t: s.t}
}

// node is the only node there is.
func (g *gcp) node() emulator.WorldGroup {
	g.t.Helper()
	groups := g.World().Groups
	if len(groups) != 1 || groups[0].Kind != cloud.KindNode {
		g.t.Fatalf("there are %+v, want one node", groups)
	}
	return groups[0]
}

// isUp reports whether there is one node, in a zone, whose machines all run.
func (g *gcp) isUp(zone string) bool {
	groups := g.World().Groups
	return len(groups) == 1 && groups[0].Zone == zone &&
		!slices.ContainsFunc(groups[0].Hosts, func(h emulator.WorldHost) bool { return !h.On })
}

func (g *gcp) key() cloud.Key {
	g.t.Helper()
	node := g.node()
	key, err := g.Find(node.Name, node.Zone, node.Kind)
	if err != nil {
		g.t.Fatal(err)
	}
	return key
}

func (g *gcp) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// uvCache is where uv keeps packages on this machine; "" where there is no uv.
func uvCache(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "uv", "cache", "dir").Output()
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// TestTrainingOnGCP trains over the four hosts of a node, loses a host, loses the
// node while its zone has no more capacity, goes on in another zone from its
// checkpoint, and succeeds; nothing is left.
func TestTrainingOnGCP(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("uv"); err != nil {
		t.Fatal("uv is not on PATH; make test installs it into .tools/bin")
	}
	s := newStack(t, "training.hcl")
	g := s.onGCP()
	if plan := s.run("plan", s.file); !strings.Contains(plan, firstZone) || !strings.Contains(plan, "16 chips") {
		t.Errorf("the plan does not say where and how much:\n%s", plan)
	}
	s.apply("--var=step_delay=0.1")
	if !g.isUp(firstZone) {
		t.Fatalf("there is %+v after apply, want a node in %s", g.World().Groups, firstZone)
	}
	stop := s.watch()
	checkpoint := func(step int) func() bool {
		return func() bool { return s.newestCheckpoint("out/training/checkpoints") >= step }
	}
	eventually(t, "there is a checkpoint of step 20", checkpoint(20))
	first := g.node()
	g.must(g.Cloud().KillHost(g.key(), 2))
	eventually(t, "it goes on after the loss of a host", func() bool { return len(s.job("job.train").Attempts) >= 2 && s.job("job.train").Ready })
	if again := g.node(); again.Created.Equal(first.Created) {
		t.Error("the node with a dead host is still there, want a new one: a slice dies as a whole")
	}

	eventually(t, "there is a checkpoint of step 50", checkpoint(50))
	zone := g.node().Zone
	other := secondZone
	if zone == secondZone { // the loss of a young slice counted against the first one
		other = firstZone
	}
	g.must(g.Cloud().Stockout(zone, "v5litepod", 24*time.Hour))
	g.must(g.Cloud().Preempt(g.key(), true))
	eventually(t, "it goes on in "+other, func() bool { return g.isUp(other) && s.job("job.train").Ready })
	eventually(t, "the job has succeeded", func() bool { return s.job("job.train").Status == "succeeded" })
	eventually(t, "nothing is left in the cloud", func() bool { return len(g.World().Groups)+len(g.World().Queued) == 0 })
	stop()
	s.wantResumed()
	if job := s.job("job.train"); len(job.Attempts) < 3 {
		t.Errorf("attempts: %+v, want three", job.Attempts)
	}
	s.destroy()
}
