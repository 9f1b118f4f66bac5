package gcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

const checkedProject = "acme-research"

// checkedCloud is an emulator with a bucket in us-west4, and the provider of a
// project on it.
type checkedCloud struct {
	emulator *emulator.Emulator
	provider *gcp.Provider
}

func newCheckedCloud(t *testing.T, scenario cloud.Scenario, change func(*gcp.Config)) *checkedCloud {
	t.Helper()
	bucket := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"location": "US-WEST4", "locationType": "region"})
	})
	e := emulated(t, emulator.Config{Cloud: cloud.Config{Scenario: scenario}, Storage: bucket})
	config := gcp.Config{Project: checkedProject, Endpoint: e.URL()}
	if change != nil {
		change(&config)
	}
	return &checkedCloud{emulator: e, provider: opened(t, config)}
}

// asks is a configuration with one job, as far as it is on Google Cloud.
func asks(change func(*schema.Provider, *schema.Resources)) schema.Desired {
	p := schema.Provider{Name: schema.ProviderGCP, Project: checkedProject, Zones: []string{"us-west4-a", "us-central1-a"}}
	r := schema.Resources{Provider: schema.ProviderGCP, TPU: "v5litepod-16", Slices: 1, Preemptible: true}
	if change != nil {
		change(&p, &r)
	}
	return schema.Desired{
		Providers: []schema.Provider{p},
		Jobs:      []schema.Job{{Addr: schema.ScopedAddress(schema.KindJob, "train"), Resources: r}},
	}
}

// told is a problem in one line: "error job.train#resources.tpu Summary: detail".
func told(p providers.Problem) string {
	severity := "error"
	if p.Warning {
		severity = "warning"
	}
	at := p.Addr.String()
	if p.Addr == (schema.Address{}) {
		at = "provider"
	}
	return severity + " " + at + "#" + p.Attribute + " " + p.Summary + ": " + p.Detail
}

// checkCase is a mistake and what is told of it: each of want is the beginning of
// a problem and, after an ellipsis, something in it. No others may be told.
type checkCase struct {
	name     string
	scenario cloud.Scenario
	config   func(*gcp.Config)
	asks     func(*schema.Provider, *schema.Resources)
	want     []string
}

func (c *checkCase) run(t *testing.T) {
	at := newCheckedCloud(t, c.scenario, c.config)
	var got []string
	for _, p := range at.provider.Check(t.Context(), asks(c.asks)) {
		got = append(got, told(p))
	}
	for i, want := range c.want {
		start, part, _ := strings.Cut(want, "…")
		if i >= len(got) || !strings.HasPrefix(got[i], start) || !strings.Contains(got[i], part) {
			t.Errorf("problem %d: want %s", i, want)
		}
	}
	if len(got) != len(c.want) || t.Failed() {
		t.Errorf("got %d problems, want %d:\n%s", len(got), len(c.want), strings.Join(got, "\n"))
	}
}

func TestCheck(t *testing.T) {
	onGCE := func(_ *schema.Provider, r *schema.Resources) {
		r.TPU, r.MachineType, r.Preemptible = "", "n2-standard-8", false
	}
	denied := func(permissions ...string) cloud.Scenario { return cloud.Scenario{API: cloud.API{Deny: permissions}} }
	disabled := func(apis ...string) cloud.Scenario { return cloud.Scenario{API: cloud.API{Disabled: apis}} }
	only := func(zones ...string) func(*schema.Provider, *schema.Resources) {
		return func(_ *schema.Provider, r *schema.Resources) { r.Zones = zones }
	}
	for _, c := range []checkCase{
		{name: "nothing is wrong"},
		{name: "nothing is wrong with machines", asks: onGCE},
		{
			name: "credentials that are refused", scenario: cloud.Scenario{API: cloud.API{Unauthenticated: true}},
			want: []string{"error provider#project No Google credentials: …`gcloud auth application-default login`"},
		},
		{
			name: "another project", scenario: cloud.Scenario{Project: "another"},
			want: []string{"error provider#project Permission is missing: compute.instances.list is missing on project acme-research…", "error provider#project Permission is missing: tpu.nodes.list …if there is no project acme-research"},
		},
		{
			name: "API disabled", scenario: disabled("tpu.googleapis.com"),
			want: []string{"error provider#project API is not enabled: The API tpu.googleapis.com…`gcloud services enable tpu.googleapis.com --project=acme-research`"},
		},
		{
			name: "both APIs disabled", scenario: disabled("tpu.googleapis.com", "compute.googleapis.com"),
			want: []string{"error provider#project API is not enabled: The API compute.googleapis.com", "error provider#project API is not enabled: The API tpu.googleapis.com"},
		},
		{
			name: "permission missing", scenario: denied("tpu.nodes.create", "tpu.nodes.update"),
			want: []string{"error provider#project Permission is missing: tpu.nodes.create, tpu.nodes.update are missing on project acme-research for the account of these credentials…--role=roles/tpu.admin`"},
		},
		{
			name: "permission of another engine missing", scenario: denied("compute.instances.create"),
		},
		{
			name: "permission of Compute Engine missing", scenario: denied("compute.instances.create"), asks: onGCE,
			want: []string{"error provider#project Permission is missing: compute.instances.create is missing"},
		},
		{
			name:     "nothing may be looked up",
			scenario: denied("compute.zones.list", "tpu.acceleratortypes.list", "tpu.acceleratorTypes.list", "compute.networks.get", "compute.regions.get", "compute.machineTypes.get"),
		},
		{
			name: "misspelt zone", asks: only("us-west4-x"),
			want: []string{"error job.train#resources.zones No such zone: There is no zone \"us-west4-x\" in project acme-research. There are us-west4-a, us-west4-b, us-west4-c."},
		},
		{
			name: "misspelt zone of the provider", asks: func(p *schema.Provider, r *schema.Resources) { p.Zones = []string{"us-west9-a"}; r.TPU, r.CPU = "", 1 },
			want: []string{"error provider#zones No such zone: …`gcloud compute zones list`"},
		},
		{
			name: "type in one of the zones only", asks: only("us-west4-a", "us-central2-b"),
			want: []string{"warning job.train#resources.zones Type is not offered: v5litepod-16 cannot be had in us-central2-b"},
		},
		{
			name: "type in none of the zones", asks: only("us-central2-b"),
			want: []string{"error job.train#resources.tpu Type is not offered: v5litepod-16 cannot be had in us-central2-b…It is offered in europe-west4-b, us-central1-a"},
		},
		{
			name: "unknown machine type", asks: func(_ *schema.Provider, r *schema.Resources) { r.TPU, r.MachineType = "", "z9-standard-8" },
			want: []string{"error job.train#resources.machine_type Type is not offered: z9-standard-8 cannot be had in us-west4-a, us-central1-a"},
		},
		{
			name: "machine too large", asks: func(_ *schema.Provider, r *schema.Resources) { r.TPU, r.CPU = "", 4000 },
			want: []string{"error job.train#resources.machine_type Type is not offered: No machine type has 4000 cores"},
		},
		{
			name: "unknown runtime version", asks: func(_ *schema.Provider, r *schema.Resources) { r.Cloud.RuntimeVersion = "v2-alpha-tpuv99" },
			want: []string{"error job.train#resources.runtime_version Unknown runtime version: …There are v2-alpha-tpuv"},
		},
		{
			name:     "quota of zero",
			scenario: cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-west4", Type: "n2", Limit: 0}, {Region: "us-central1", Type: "n2", Limit: 0}}}, asks: onGCE,
			want: []string{"error job.train#resources.machine_type Quota is zero: Project acme-research has no quota for n2-standard-8 in us-west4, us-central1: the limit of N2_CPUS is 0."},
		},
		{
			name: "quota of zero in one region", scenario: cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-west4", Type: "n2", Limit: 0}}}, asks: onGCE,
			want: []string{"warning provider#zones Quota is zero: …in us-west4: "},
		},
		{
			name: "bucket elsewhere", config: func(c *gcp.Config) { c.Bucket = "acme-fray" },
			want: []string{"warning provider#zones Bucket is far away: The stack's bucket acme-fray is in us-west4, and slices may be in us-central1: …$0.02 a GiB"},
		},
		{
			name: "bucket on another continent", config: func(c *gcp.Config) { c.Bucket = "acme-fray" }, asks: only("us-west4-a", "europe-west4-b"),
			want: []string{"warning job.train#resources.zones Bucket is far away: …in europe-west4: what they read of it costs about $0.05 to $0.14 a GiB"},
		},
		{
			name: "bucket where the slices are", config: func(c *gcp.Config) { c.Bucket = "acme-fray" }, asks: only("us-west4-a"),
		},
		{
			name: "network missing", scenario: cloud.Scenario{Networks: []string{"default"}},
			asks: func(_ *schema.Provider, r *schema.Resources) { r.Cloud.Network = "training" },
			want: []string{"error job.train#resources.network Network not found: There is no network training."},
		},
		{
			name: "network of the provider missing", scenario: cloud.Scenario{Networks: []string{"default"}},
			asks: func(p *schema.Provider, r *schema.Resources) {
				p.Cloud.Network, r.Cloud.Network = "training", "training"
			},
			want: []string{"error provider#network Network not found: There is no network training."},
		},
		{
			name: "no default network", scenario: cloud.Scenario{Networks: []string{"training"}},
			want: []string{"error provider#network Network not found: Project acme-research has no network named default"},
		},
		{
			name: "subnetwork missing", scenario: cloud.Scenario{Networks: []string{"default"}},
			asks: func(_ *schema.Provider, r *schema.Resources) {
				r.Cloud.Subnetwork, r.Zones = "training", []string{"us-west4-a"}
			},
			want: []string{"error job.train#resources.subnetwork Subnetwork not found: There is no subnetwork training in us-west4"},
		},
	} {
		t.Run(c.name, c.run)
	}
}

// TestCheckAsksNothingForNothing: a stack that is not on Google Cloud makes no call.
func TestCheckAsksNothingForNothing(t *testing.T) {
	at := newCheckedCloud(t, cloud.Scenario{API: cloud.API{Unauthenticated: true}}, nil)
	if got := at.provider.Check(t.Context(), asks(func(_ *schema.Provider, r *schema.Resources) { r.Provider = schema.ProviderLocal })); len(got) != 0 {
		t.Errorf("got %v, want no problem", got)
	}
}

// TestCheckOfManyInstances: what all instances of a block do wrong is told once.
func TestCheckOfManyInstances(t *testing.T) {
	at := newCheckedCloud(t, cloud.Scenario{}, nil)
	desired := asks(func(_ *schema.Provider, r *schema.Resources) { r.Zones = []string{"us-central2-b"} })
	for i := range 100 {
		job := desired.Jobs[0]
		job.Addr.Key = schema.IntKey(i)
		desired.Jobs = append(desired.Jobs, job)
	}
	if got := at.provider.Check(t.Context(), desired); len(got) != 1 {
		t.Errorf("got %d problems, want 1: %v", len(got), got)
	}
}

// plainService answers what emulators do not know: service accounts and disks.
func plainService(t *testing.T, gone []string, status int) *gcp.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if slices.ContainsFunc(gone, func(path string) bool { return strings.HasSuffix(r.URL.Path, path) }) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":"The resource was not found","errors":[{"reason":"notFound"}]}}`, status)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	return opened(t, gcp.Config{Project: checkedProject, Endpoint: server.URL})
}

func TestCheckOfWhatIsNamed(t *testing.T) {
	const account, disk = "/serviceAccounts/robot@acme.iam.gserviceaccount.com", "/disks/data"
	for _, test := range []struct {
		name   string
		gone   []string
		status int
		want   string // in the problem; "": none
	}{
		{"all there", nil, 0, ""},
		{"no such account", []string{account}, 404, "error job.train#resources.service_account Service account not found: "},
		{"account that may not be seen", []string{account}, 403, ""},
		{"disk in one zone only", []string{"us-central1-a" + disk}, 404, "warning job.train#resources.disks Disk not found: A disk is in one zone, and data is not in us-central1-a"},
		{"disk in none", []string{disk}, 404, "error job.train#resources.disks Disk not found: There is no disk data in us-west4-a, us-central1-a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plainService(t, test.gone, test.status)
			var got []string
			for _, problem := range p.Check(t.Context(), asks(func(_ *schema.Provider, r *schema.Resources) {
				r.TPU, r.MachineType = "", "n2-standard-8"
				r.Cloud.ServiceAccount, r.Cloud.Disks = "robot@acme.iam.gserviceaccount.com", "data:ro"
			})) {
				if text := told(problem); !strings.Contains(text, "Cloud could not be checked") && !strings.Contains(text, "Permission is missing") {
					got = append(got, text)
				}
			}
			if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
