package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	google "github.com/fray-ml/fray/providers/gcp/emulator"
	gcpcloud "github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

const importConfig = `fray {
  state "gcs" {
    bucket = "acme"
  }
}

provider "gcp" {
  project = "acme-research"
  zones   = ["us-west4-a"]
}

job "train" {
  command = ["sleep", "1000"]
  resources {
    tpu         = "TYPE"
    preemptible = false
  }
}
`

const importBlock = `
import {
  to = job.train
  id = "projects/acme-research/locations/us-west4-a/nodes/old"
}
`

// importSite is a cloud with a node that was made by hand.
type importSite struct {
	*google.Emulator
	t   *testing.T
	dir string
	tpu tpuapi.TpuClient
}

func newImportSite(t *testing.T) *importSite {
	t.Helper()
	s := &importSite{t: t, dir: t.TempDir()}
	soon := gcpcloud.Range{Min: time.Millisecond, Max: 2 * time.Millisecond}
	e, err := google.Open(t.Context(), google.Site{
		Scenario: gcpcloud.Scenario{Project: "acme-research", Conditions: gcpcloud.Conditions{Provisioning: soon, Deletion: soon}},
		Dir:      filepath.Join(t.TempDir(), "cloud"), Buckets: []storage.Bucket{{Name: emulatedBucket, Location: "US-WEST4"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Emulator = e
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("FRAY_GCP_ENDPOINT", e.URL())
	at, err := url.Parse(e.URL())
	if err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(at.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	s.tpu = tpuapi.NewTpuClient(connection)
	s.create()
	return s
}

const importParent = "projects/acme-research/locations/us-west4-a"

func (s *importSite) create() {
	s.t.Helper()
	_, err := s.tpu.CreateNode(s.t.Context(), &tpuapi.CreateNodeRequest{Parent: importParent, NodeId: "old", Node: &tpuapi.Node{
		AcceleratorType: "v5litepod-4", RuntimeVersion: "v2-alpha-tpuv5-lite", NetworkConfig: &tpuapi.NetworkConfig{EnableExternalIps: true},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.until("the node is ready", func() bool { return s.node().GetState() == tpuapi.Node_READY })
}

func (s *importSite) node() *tpuapi.Node {
	n, err := s.tpu.GetNode(s.t.Context(), &tpuapi.GetNodeRequest{Name: importParent + "/nodes/old"})
	if err != nil {
		return nil
	}
	return n
}

func (s *importSite) mark() string { return s.node().GetLabels()["fray-stack"] }

func (s *importSite) until(what string, is func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline.C:
			s.t.Fatalf("within %s it does not come about that %s", patience, what)
		case <-tick.C:
		}
	}
}

func (s *importSite) write(tpu, more string) {
	writeConfig(s.t, s.dir, strings.Replace(importConfig, "TYPE", tpu, 1)+more)
}

// fray runs a verb and wants what it prints to hold all of these.
func (s *importSite) fray(code int, want []string, args ...string) string {
	s.t.Helper()
	out, errs, got := frayIn(s.t, s.dir, args...)
	for _, part := range want {
		if !strings.Contains(strings.Join(strings.Fields(out+errs), " "), part) {
			s.t.Errorf("fray %v does not say %q", args, part)
		}
	}
	if got != code || s.t.Failed() {
		s.t.Fatalf("fray %v: exit code %d, want %d\n%s\n%s", args, got, code, out, errs)
	}
	return out + errs
}

// startAgain boots the node's machines, as `google_metadata_script_runner startup`
// on them would do for fray's agent.
func (s *importSite) startAgain() {
	s.t.Helper()
	key, err := s.Find("old", "us-west4-a", gcpcloud.KindNode)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.Cloud().Restart(key); err != nil {
		s.t.Fatal(err)
	}
}

// TestImportBlockOfANode: a plan shows that a node will be taken over and leaves
// it as it is; apply marks it and runs the job on it; its end is the node's.
func TestImportBlockOfANode(t *testing.T) {
	s := newImportSite(t)
	s.write("v5litepod-4", importBlock)
	s.fray(0, []string{"Plan: 1 to import, 0 to create, 0 to delete.", "4 chips"}, "plan")
	if mark := s.mark(); mark != "" {
		t.Fatalf("plan has marked it: %s", mark)
	}
	ended := make(chan string, 1)
	go func() {
		out, errs, code := frayIn(t, s.dir, "apply", "--auto-approve", "--timeout=5m")
		if code != 0 {
			errs += "\nfailed"
		}
		ended <- out + errs
	}()
	s.until("it is marked", func() bool { return s.mark() != "" })
	s.startAgain()
	if said := <-ended; strings.HasSuffix(said, "failed") || !strings.Contains(said, "google_metadata_script_runner startup") {
		t.Fatalf("apply: %s", said)
	}
	s.fray(0, []string{"No changes."}, "plan")
	if groups := s.World().Groups; len(groups) != 1 || groups[0].Name != "old" {
		t.Errorf("there are %+v, want the one node", groups)
	}
	s.fray(0, nil, "destroy", "--auto-approve")
	s.until("it is deleted", func() bool { return len(s.World().Groups) == 0 })
}

func TestImportBlockThatIsRefused(t *testing.T) {
	for _, test := range []struct{ name, tpu, id, want string }{
		{"another shape", "v5litepod-8", "us-west4-a/old", "its type is v5litepod-4, and v5litepod-8 is declared"},
		{"not there", "v5litepod-4", "us-west4-a/new", "there is no node new in us-west4-a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newImportSite(t)
			s.write(test.tpu, "import {\n  to = job.train\n  id = \""+test.id+"\"\n}\n")
			s.fray(1, []string{"Error: Cannot be imported", "on fray.hcl line 19, in import", test.want}, "plan")
			s.fray(1, []string{test.want}, "apply", "--auto-approve")
			if mark := s.mark(); mark != "" || len(s.World().Groups) != 1 {
				t.Errorf("mark %q, groups %+v, want the node as it was", mark, s.World().Groups)
			}
		})
	}
}

// TestImportByHand: fray import does the same, and again after it was cut short
// anywhere.
func TestImportByHand(t *testing.T) {
	s := newImportSite(t)
	writeConfig(t, s.dir, strings.Split(importConfig, "job ")[0])
	s.fray(0, nil, "apply", "--auto-approve")
	s.write("v5litepod-4", "")
	for range 2 { // the second finds it imported
		out, errs, code := frayIn(t, s.dir, "import", "job.train", "us-west4-a/old")
		if code == 0 && !strings.Contains(out, "job.train has old.") {
			t.Fatalf("import: %s%s", out, errs)
		}
		if code != 0 && !strings.Contains(errs, "it has slices already (old)") {
			t.Fatalf("import: exit code %d: %s", code, errs)
		}
	}
	if mark := s.mark(); mark == "" {
		t.Error("it is not marked")
	}
	if out := s.fray(0, nil, "plan"); strings.Contains(out, "to create") && !strings.Contains(out, "0 to create") {
		t.Errorf("plan after the import: %s", out)
	}
}
