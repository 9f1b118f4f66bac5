package gcp_test

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// in has one network, named training, that all machines are in.
func in(n cloud.Network) cloud.Scenario {
	n.Name = "training"
	return cloud.Scenario{NetworkRules: []cloud.Network{n}}
}

// TestCheckOfTheNetwork: what machines do not reach is reported with the command that fixes it.
func TestCheckOfTheNetwork(t *testing.T) {
	slicesOf := func(n int) func(*schema.Job) { return func(j *schema.Job) { j.Resources.Slices = n } }
	alone := func(j *schema.Job) { j.Resources.TPU = "v5litepod-8" }
	const closed = "error job.train#resources.network Hosts cannot reach each other: "
	for _, c := range []struct {
		name     string
		scenario cloud.Scenario
		change   func(*schema.Job)
		want     []string // each the beginning, and after an ellipsis parts
	}{
		{name: "everything is allowed", scenario: in(cloud.Network{Allow: []string{"all"}}), change: slicesOf(2)},
		{name: "all of TCP is", scenario: in(cloud.Network{Allow: []string{"icmp", "tcp"}}), change: slicesOf(2)},
		{name: "just the ports are", scenario: in(cloud.Network{Allow: []string{"tcp:8081", "tcp:8470-8476"}}), change: slicesOf(2)},
		{
			name: "nothing is", scenario: in(cloud.Network{}),
			want: []string{closed + "In network training the hosts of v5litepod-16 do not reach each other at TCP 8471, 8476, for libtpu and JAX: no firewall rule allows that.…" +
				"`gcloud compute firewall-rules create training-allow-fray --project=acme-research --network=training --direction=INGRESS --priority=900 --allow=tcp,udp,icmp --source-ranges=10.128.0.0/9`"},
		},
		{name: "nothing is, with one host", scenario: in(cloud.Network{}), change: alone},
		{
			name: "several slices of one host", scenario: in(cloud.Network{Allow: []string{"tcp:22", "udp", "tcp:8476"}}),
			change: func(j *schema.Job) { alone(j); j.Resources.Slices = 2 },
			want:   []string{closed + "…TCP 8081, for libtpu, JAX and MEGASCALE"},
		},
		{
			name: "actors", scenario: in(cloud.Network{Allow: []string{"tcp:80"}}),
			change: func(j *schema.Job) {
				alone(j)
				j.Resources.Ports = []schema.Port{{Name: "actor"}, {Name: "http", Number: 80}, {Name: "metrics", Number: 9090}}
			},
			want: []string{"warning job.train#resources.network Hosts cannot reach each other: In network training other hosts do not reach the ports actor, http, metrics of its tasks (TCP 9090, 20000-31999): …firewall-rules create"},
		},
		{
			name: "no way to packages", scenario: in(cloud.Network{Allow: []string{"all"}, NAT: []string{"us-west4"}}),
			change: func(j *schema.Job) { j.Resources.Cloud.Live.InternalIPs, j.Environment.UV = true, &schema.UV{} },
			want: []string{"warning job.train#resources.external_ips No way to the internet: …no Cloud NAT in us-central1: they cannot fetch the packages of its uv environment.…" +
				"`gcloud compute routers nats create nat --project=acme-research --router=training-us-central1 --region=us-central1"},
		},
		{
			name: "no way to an image", scenario: in(cloud.Network{Allow: []string{"all"}}),
			change: func(j *schema.Job) {
				j.Resources.Zones, j.Resources.Cloud.Live.InternalIPs, j.Environment.Image = []string{"us-west4-a"}, true, "ghcr.io/acme/train:1"
			},
			want: []string{"warning job.train#resources.external_ips No way to the internet: …cannot fetch the image ghcr.io/acme/train:1"},
		},
		{
			name: "images of Google need none", scenario: in(cloud.Network{Allow: []string{"all"}}),
			change: func(j *schema.Job) {
				j.Resources.Cloud.Live.InternalIPs, j.Environment.Image = true, "us-docker.pkg.dev/acme/ml/train:1"
			},
		},
		{
			name: "external addresses need none", scenario: in(cloud.Network{Allow: []string{"all"}, NoGoogleAccess: true}),
			change: func(j *schema.Job) { j.Environment.UV = &schema.UV{} },
		},
		{
			name: "no way to Google", scenario: in(cloud.Network{Allow: []string{"all"}, NoGoogleAccess: true}),
			change: func(j *schema.Job) {
				j.Resources.Zones, j.Resources.Cloud.Live.InternalIPs = []string{"us-west4-a"}, true
			},
			want: []string{"warning job.train#resources.external_ips No way to Google's APIs: …`gcloud compute networks subnets update training --project=acme-research --region=us-west4 --enable-private-ip-google-access`"},
		},
		{
			name: "guest attributes", scenario: cloud.Scenario{API: cloud.API{Constraints: []string{"compute.disableGuestAttributesAccess"}}},
			want: []string{"warning provider#project Guest attributes are disabled: …`gcloud resource-manager org-policies disable-enforce compute.disableGuestAttributesAccess --project=acme-research`"},
		},
		{
			name: "nothing may be read", change: func(j *schema.Job) {
				slicesOf(2)(j)
				j.Resources.TPU, j.Resources.Cloud.Live.InternalIPs = "v5p-16", true
				j.Resources.Zones = []string{"us-east5-a", "us-central1-a"}
			},
			scenario: cloud.Scenario{API: cloud.API{
				Deny:     []string{"compute.networks.getEffectiveFirewalls", "compute.routers.list", "compute.subnetworks.get", "orgpolicy.policy.get"},
				Disabled: []string{"cloudquotas.googleapis.com"},
			}},
			want: []string{"warning provider#project Some checks were left out: These credentials may not read: Cloud NAT (compute.routers.list, which roles/compute.networkViewer has); firewall rules (compute.networks.getEffectiveFirewalls, " +
				"…; quotas of accelerators (the API cloudquotas.googleapis.com is not enabled); subnetworks (…organization policies (orgpolicy.policy.get"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := newCheckedCloud(t, c.scenario, nil)
			desired := asks(func(_ *schema.Provider, r *schema.Resources) { r.Cloud.Network = "training" })
			if c.change != nil {
				c.change(&desired.Jobs[0])
			}
			expectProblems(t, at.provider, desired, c.want)
		})
	}
}

// expectProblems compares what a check reports: each of want is the beginning of a problem and,
// after ellipses, parts of it. No others may be reported.
func expectProblems(t *testing.T, p *gcp.Provider, desired schema.Desired, want []string) {
	t.Helper()
	var got []string
	for _, problem := range p.Check(t.Context(), desired) {
		got = append(got, told(problem))
	}
	for i, each := range want {
		for j, part := range strings.Split(each, "…") {
			if i >= len(got) || j == 0 && !strings.HasPrefix(got[i], part) || !strings.Contains(got[i], part) {
				t.Errorf("problem %d has no %s", i, part)
			}
		}
	}
	if len(got) != len(want) || t.Failed() {
		t.Errorf("got %d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}

// TestCheckOfReservations: jobs on a reservation's slices need their network.
func TestCheckOfReservations(t *testing.T) {
	at := newCheckedCloud(t, in(cloud.Network{}), nil)
	desired := asks(nil)
	desired.Reservations = []schema.Reservation{{
		Addr: schema.ScopedAddress(schema.KindReservation, "pool"), Provider: schema.ProviderGCP,
		Min: schema.Capacity{TPU: "v5litepod-8", Slices: 2}, Cloud: schema.CloudSpec{Network: "training"},
	}}
	desired.Jobs[0].Resources = schema.Resources{Provider: schema.ProviderGCP, Reservation: "pool", TPU: "v5litepod-8", Slices: 2}
	expectProblems(t, at.provider, desired, []string{"error reservation.pool#network Hosts cannot reach each other: …8476, 8081, for libtpu, JAX and MEGASCALE"})
}

// TestCheckOfTPUQuotas: limits of the Cloud TPU API and of Compute Engine, in chips of
// one attempt.
func TestCheckOfTPUQuotas(t *testing.T) {
	quotas := func(all ...cloud.Quota) cloud.Scenario { return cloud.Scenario{Quotas: all} }
	job := func(tpu string, change func(*schema.Resources)) func(*schema.Provider, *schema.Resources) {
		return func(_ *schema.Provider, r *schema.Resources) {
			r.TPU, r.Zones = tpu, []string{"us-east5-a"}
			if change != nil {
				change(r)
			}
		}
	}
	onDemand := func(r *schema.Resources) { r.Preemptible = false }
	for _, c := range []checkCase{
		{name: "enough", asks: job("v6e-16", nil), scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v6e", Tier: cloud.TierSpot, Limit: 16})},
		{name: "of another tier", asks: job("v6e-16", nil), scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v6e", Tier: cloud.TierOnDemand, Limit: 0})},
		{
			name: "none of v6e", asks: job("v6e-16", nil), scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v6e", Tier: cloud.TierSpot, Limit: 0}),
			want: []string{"error job.train#resources.tpu Quota is too small: An attempt needs 16 chips of v6e, and project acme-research may not use as many in us-east5-a: TPUV6EPreemptiblePerProjectPerRegionForTPUAPI is 0. Ask…iam-admin/quotas"},
		},
		{
			name: "too few of v5p for all slices", asks: job("v5p-16", func(r *schema.Resources) { r.Slices, r.Preemptible = 3, false }),
			scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v5p", Tier: cloud.TierOnDemand, Limit: 16}),
			want:     []string{"error job.train#resources.tpu Quota is too small: An attempt needs 24 chips of v5p…TPUV5PPerProjectPerRegionForTPUAPI is 16"},
		},
		{
			name: "too few in one of the zones", asks: job("v6e-16", func(r *schema.Resources) { r.Zones = []string{"us-east5-a", "us-east1-d"} }),
			scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v6e", Tier: cloud.TierSpot, Limit: 8}),
			want:     []string{"warning job.train#resources.zones Quota is too small: …in us-east5-a: "},
		},
		{
			name: "v5p on Compute Engine", asks: job("v5p-16", func(r *schema.Resources) { r.Cloud.Engine = schema.EngineGCE }),
			scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v5p", Tier: cloud.TierSpot, Limit: 4}),
			want:     []string{"error job.train#resources.tpu Quota is too small: …PREEMPTIBLE-TPU-V5P-per-project-region is 4"},
		},
		{
			name: "v6e on Compute Engine", asks: job("v6e-16", func(r *schema.Resources) { onDemand(r); r.Cloud.Engine = schema.EngineGCE }),
			scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v6e", Limit: 0}),
			want:     []string{"error job.train#resources.tpu Quota is too small: …TPUS-PER-TPU-FAMILY-per-project-region is 0"},
		},
		{
			name: "TPU7x", asks: job("tpu7x-16", func(r *schema.Resources) { onDemand(r); r.Zones = []string{"us-central1-c"} }),
			scenario: quotas(cloud.Quota{Region: "us-central1", Type: "tpu7x", Limit: 0}, cloud.Quota{Region: "us-central1", Type: "v6e", Limit: 64}),
			want:     []string{"error job.train#resources.tpu Quota is too small: An attempt needs 8 chips of tpu7x…TPUS-PER-TPU-FAMILY-per-project-region is 0"},
		},
		{name: "flex-start has two", asks: job("v6e-16", func(r *schema.Resources) {
			r.Cloud.Provisioning, r.Cloud.Engine = schema.ProvisioningFlexStart, schema.EngineGCE
		}), scenario: quotas(cloud.Quota{Region: "us-east5", Type: "v6e", Tier: cloud.TierSpot, Limit: 0})},
	} {
		t.Run(c.name, c.run)
	}
}
