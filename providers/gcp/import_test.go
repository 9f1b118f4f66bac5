package gcp_test

import (
	"context"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

const (
	importZone  = "us-west4-a"
	importStack = "abcdefghijkl"
)

// bootMetadata is what the machines of tests start with.
type bootMetadata struct{}

func (bootMetadata) Metadata(spec schema.SliceSpec) (map[string]string, error) {
	return map[string]string{"startup-script": "#! fray", "fray-slice": spec.Name}, nil
}

// manual is a cloud in which slices are made by other means than fray.
type manual struct {
	*checkedCloud
	tpu       tpuapi.TpuClient
	instances *compute.InstancesClient
}

func newManual(t *testing.T) *manual {
	t.Helper()
	soon := cloud.Range{Min: time.Millisecond, Max: 2 * time.Millisecond}
	scenario := cloud.Scenario{Conditions: cloud.Conditions{Provisioning: soon, Deletion: soon}}
	m := &manual{checkedCloud: newCheckedCloud(t, scenario, func(c *gcp.Config) {
		c.Bootstrap, c.Backoff = bootMetadata{}, time.Millisecond
	})}
	at, err := url.Parse(m.emulator.URL())
	if err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(at.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	m.tpu = tpuapi.NewTpuClient(connection)
	m.instances, err = compute.NewInstancesRESTClient(t.Context(), option.WithEndpoint(m.emulator.URL()), option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.instances.Close() })
	return m
}

func (m *manual) parent() string { return "projects/" + checkedProject + "/locations/" + importZone }

// node makes a node and waits until it is ready.
func (m *manual) node(t *testing.T, name string, change func(*tpuapi.Node)) {
	t.Helper()
	n := &tpuapi.Node{
		AcceleratorType: "v5litepod-16", RuntimeVersion: "v2-alpha-tpuv5-lite", Labels: map[string]string{"team": "vision"},
		Metadata:         map[string]string{"startup-script": "#! mine", "note": "keep"},
		SchedulingConfig: &tpuapi.SchedulingConfig{Spot: true},
		NetworkConfig:    &tpuapi.NetworkConfig{EnableExternalIps: true}, Tags: []string{"mine"},
	}
	if change != nil {
		change(n)
	}
	if _, err := m.tpu.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{Parent: m.parent(), NodeId: name, Node: n}); err != nil {
		t.Fatal(err)
	}
	m.ready(t, name)
}

func (m *manual) ready(t *testing.T, name string) {
	t.Helper()
	eventually(t, "node "+name, func() bool {
		n, err := m.tpu.GetNode(t.Context(), &tpuapi.GetNodeRequest{Name: m.parent() + "/nodes/" + name})
		return err == nil && n.GetState() == tpuapi.Node_READY
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		if is() {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not come about", what)
		case <-tick.C:
		}
	}
}

// wanted is the spec of a job's slice, as plan makes it.
func wanted(change func(*schema.SliceSpec)) schema.SliceSpec {
	spec := schema.SliceSpec{
		Name: "train-0-1a2b3c4d", Stack: importStack, Owner: schema.ScopedAddress(schema.KindJob, "train"),
		Provider: schema.ProviderGCP, TPU: "v5litepod-16", Preemptible: true, Hosts: 4,
	}
	if change != nil {
		change(&spec)
	}
	return spec
}

// listed is the one slice of the stack.
func (m *manual) listed(t *testing.T) schema.SliceStatus {
	t.Helper()
	inventory, err := m.provider.Inventory(t.Context(), importStack)
	if err != nil || len(inventory.Slices) != 1 {
		t.Fatalf("listed %v, %v, want one slice", inventory.Slices, err)
	}
	return inventory.Slices[0]
}

func TestImportNode(t *testing.T) {
	for name, id := range map[string]string{
		"by its path":    "projects/acme-research/locations/us-west4-a/nodes/old",
		"by its address": "https://tpu.googleapis.com/v2/projects/acme-research/locations/us-west4-a/nodes/old",
		"in short":       "us-west4-a/old",
		"by number":      "projects/1234/locations/us-west4-a/nodes/old",
	} {
		t.Run(name, func(t *testing.T) {
			m := newManual(t)
			m.node(t, "old", nil)
			spec := wanted(func(s *schema.SliceSpec) {
				s.Cloud.Live = schema.CloudLive{Labels: "team=vision,x=y", Tags: "mine,more"}
			})
			before, err := m.provider.Find(t.Context(), id, spec)
			if err != nil {
				t.Fatal(err)
			}
			if inventory, _ := m.provider.Inventory(t.Context(), importStack); len(inventory.Slices) != 0 {
				t.Fatalf("looking made it the stack's: %v", inventory.Slices)
			}
			got, err := m.provider.Import(t.Context(), id, spec)
			if err != nil {
				t.Fatal(err)
			}
			want := spec
			want.Name, want.Zone, want.Cloud.Engine = "old", importZone, schema.EngineTPU
			want.Cloud.Live = schema.CloudLive{Labels: "team=vision", Tags: "mine"} // the rest is an update's
			if got != want || before.Spec != want || m.listed(t).Spec != want {
				t.Errorf("imported %+v\nfound %+v\nlisted %+v\nwant %+v", got, before.Spec, m.listed(t).Spec, want)
			}
			n, err := m.tpu.GetNode(t.Context(), &tpuapi.GetNodeRequest{Name: m.parent() + "/nodes/old"})
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]string{
				"startup-script": "#! fray", "fray-replaced-startup-script": "#! mine", "note": "keep", "fray-slice": "old",
			} {
				if got := n.GetMetadata()[key]; got != want {
					t.Errorf("metadata %s is %q, want %q", key, got, want)
				}
			}
			if want := map[string]string{"team": "vision", "fray-stack": importStack, "fray-slice": "old"}; !maps.Equal(n.GetLabels(), want) {
				t.Errorf("labels are %v, want %v", n.GetLabels(), want)
			}
		})
	}
}

// TestImportTwice: an import that was cut short after it had marked is done again.
func TestImportTwice(t *testing.T) {
	m := newManual(t)
	m.node(t, "old", nil)
	first, err := m.provider.Import(t.Context(), "us-west4-a/old", wanted(nil))
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.provider.Import(t.Context(), "us-west4-a/old", wanted(func(s *schema.SliceSpec) { s.Index = 1 }))
	if err != nil || again != first {
		t.Errorf("got %+v, %v, want what it was marked as: %+v", again, err, first)
	}
	if err := m.provider.Delete(t.Context(), schema.SliceSpec{Stack: importStack, Name: "old"}); err != nil {
		t.Errorf("delete what was imported: %v", err)
	}
}

func TestImportRejects(t *testing.T) {
	const id = "us-west4-a/old"
	for _, test := range []struct {
		name string
		id   string
		made func(*tpuapi.Node)
		spec func(*schema.SliceSpec)
		kind schema.ErrorKind
		want string
	}{
		{name: "nothing there", id: "us-west4-a/other", kind: schema.ErrorInvalid, want: "there is no node other in us-west4-a"},
		{name: "no queued resource", id: "projects/acme-research/locations/us-west4-a/queuedResources/old", kind: schema.ErrorInvalid, want: "there is no queued resource old"},
		{name: "another project", id: "projects/other/locations/us-west4-a/nodes/old", kind: schema.ErrorInvalid, want: "it is in project other, and the provider block states acme-research"},
		{name: "no id", id: "old", kind: schema.ErrorInvalid, want: "write ZONE/NAME"},
		{name: "another stack's", made: func(n *tpuapi.Node) { n.Labels["fray-stack"] = "zyx" }, kind: schema.ErrorConflict, want: "it carries the mark of another stack, zyx"},
		{name: "half marked", made: func(n *tpuapi.Node) { n.Labels["fray-stack"] = importStack }, kind: schema.ErrorConflict, want: "its metadata has no fray-spec"},
		{
			name: "another type", spec: func(s *schema.SliceSpec) { s.TPU = "v5litepod-8" }, kind: schema.ErrorConflict,
			want: "it is not what is declared: its type is v5litepod-16, and v5litepod-8 is declared",
		},
		{
			name: "on demand", made: func(n *tpuapi.Node) { n.SchedulingConfig = nil }, kind: schema.ErrorConflict,
			want: "its provisioning is not preemptible, and preemptible is declared",
		},
		{
			name: "several differences", kind: schema.ErrorConflict, want: "its runtime version is v2-alpha-tpuv5-lite, and v2 is declared; its network is default, and training is declared",
			made: func(n *tpuapi.Node) { n.NetworkConfig.Network = "projects/p/global/networks/default" },
			spec: func(s *schema.SliceSpec) { s.Cloud.RuntimeVersion, s.Cloud.Network = "v2", "training" },
		},
		{
			name: "a disk", spec: func(s *schema.SliceSpec) { s.Cloud.Disks = "data:ro" }, kind: schema.ErrorConflict, want: "the disk data:ro is not attached",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newManual(t)
			m.node(t, "old", test.made)
			if test.id == "" {
				test.id = id
			}
			before, err := m.tpu.GetNode(t.Context(), &tpuapi.GetNodeRequest{Name: m.parent() + "/nodes/old"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.provider.Import(t.Context(), test.id, wanted(test.spec))
			if err == nil || providers.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v (%s), want %q (%s)", err, providers.KindOf(err), test.want, test.kind)
			}
			after, err := m.tpu.GetNode(t.Context(), &tpuapi.GetNodeRequest{Name: m.parent() + "/nodes/old"})
			if err != nil || !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetMetadata(), after.GetMetadata()) {
				t.Errorf("it was changed: %v, %v", after, err)
			}
		})
	}
}

// TestImportDeadNode: only what lives is taken over.
func TestImportDeadNode(t *testing.T) {
	m := newManual(t)
	m.node(t, "old", func(n *tpuapi.Node) { n.AcceleratorType, n.SchedulingConfig = "v5litepod-8", nil })
	if _, err := m.tpu.StopNode(t.Context(), &tpuapi.StopNodeRequest{Name: m.parent() + "/nodes/old"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rejection for the stopped node", func() bool {
		_, err := m.provider.Find(t.Context(), "us-west4-a/old", wanted(func(s *schema.SliceSpec) { s.TPU, s.Hosts, s.Preemptible = "v5litepod-8", 1, false }))
		return err != nil && strings.Contains(err.Error(), "its node is STOPPED; only what lives can be imported")
	})
}

func TestImportQueuedResource(t *testing.T) {
	for _, test := range []struct {
		name string
		node string
		want string // in the error; "": none
	}{
		{"of the node's name", "old", ""},
		{"of another name", "elsewhere", "the node elsewhere was made by the queued resource old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newManual(t)
			q := &tpuapi.QueuedResource{
				Resource: &tpuapi.QueuedResource_Tpu_{Tpu: &tpuapi.QueuedResource_Tpu{NodeSpec: []*tpuapi.QueuedResource_Tpu_NodeSpec{{
					Parent: m.parent(), NodeId: test.node, Node: &tpuapi.Node{AcceleratorType: "v5litepod-16", RuntimeVersion: "v2-alpha-tpuv5-lite"},
				}}}},
				Tier: &tpuapi.QueuedResource_Spot_{Spot: &tpuapi.QueuedResource_Spot{}},
			}
			_, err := m.tpu.CreateQueuedResource(t.Context(), &tpuapi.CreateQueuedResourceRequest{Parent: m.parent(), QueuedResourceId: "old", QueuedResource: q})
			if err != nil {
				t.Fatal(err)
			}
			m.ready(t, test.node)
			_, err = m.provider.Import(t.Context(), m.parent()+"/queuedResources/old", wanted(nil))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := m.listed(t); got.Spec.Name != "old" || got.Phase != schema.SliceReady {
				t.Errorf("listed %+v", got)
			}
			if err := m.provider.Delete(t.Context(), schema.SliceSpec{Stack: importStack, Name: "old"}); err != nil {
				t.Errorf("delete what was imported, with its queued resource: %v", err)
			}
			eventually(t, "the deletion", func() bool {
				inventory, err := m.provider.Inventory(t.Context(), importStack)
				return err == nil && len(inventory.Slices) == 0
			})
		})
	}
}

func TestStartCommand(t *testing.T) {
	node := wanted(func(s *schema.SliceSpec) { s.Name, s.Zone, s.Cloud.Engine = "old", importZone, schema.EngineTPU })
	want := `gcloud compute tpus tpu-vm ssh old --project=p --zone=us-west4-a --worker=all --command="sudo google_metadata_script_runner startup"`
	if got := gcp.StartCommand("p", node); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	node.Cloud.Engine = schema.EngineGCE
	if got := gcp.StartCommand("p", node); !strings.HasPrefix(got, "gcloud compute ssh old ") || strings.Contains(got, "--worker") {
		t.Errorf("of an instance: %s", got)
	}
}
