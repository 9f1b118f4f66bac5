package lang

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

const references = `
	job "one" {
		command = ["x"]
		resources { ports = ["http", "admin"] }
	}
	job "many" {
		count   = 2
		command = ["x"]
	}
	job "keyed" {
		for_each = toset(["a", "b"])
		command  = ["x"]
	}
	job_group "g" {
		job "in" { command = ["x"] }
	}
	actor_service "s" {
		replicas = 2
		command  = ["x"]
		resources { ports = ["rpc", "admin"] }
	}
	job "reader" {
		command = [
			"x",
			job.one.id, job.one.address, jsonencode(job.one.addresses), job.one.ports.http, job.one.slices[0], job.one.status, job.one.name,
			job.many[1].id, join(",", job.many[*].address), length(job.many),
			job.keyed["a"].id, join(",", [for k, j in job.keyed : "$${k}=$${j.id}"]),
			job_group.g.job.in.id, jsonencode(actor_service.s.endpoints), length(actor_service.s.endpoints),
		]
	}
	output "endpoints" { value = actor_service.s.endpoints }
	output "known" { value = length(job.many) }
`

func texts(t *testing.T, words []schema.Text) []string {
	t.Helper()
	shown := make([]string, 0, len(words))
	for _, w := range words {
		shown = append(shown, w.String())
	}
	return shown
}

func reader(t *testing.T, c *schema.Config) schema.Job {
	t.Helper()
	for _, j := range c.Desired.Jobs {
		if j.Addr == job("reader") {
			return j
		}
	}
	t.Fatal("there is no job.reader")
	return schema.Job{}
}

func referencesSource() string {
	// HCL's own interpolation in Go's raw string
	return strings.ReplaceAll(references, "$${", "${")
}

func TestReferencesBeforeApply(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, referencesSource(), eval.Options{})
	const later = "(known after apply)"
	want := []string{
		"x", later, later, later, later, later, later, "one",
		later, later, "2", later, later, later, later, "2",
	}
	if diff := cmp.Diff(want, texts(t, reader(t, c).Command)); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if o := c.Outputs["endpoints"]; !o.Unknown || o.Value != nil {
		t.Errorf("output endpoints = %+v, want it unknown", o)
	}
	if o := c.Outputs["known"]; string(o.Value) != "2" {
		t.Errorf("output known = %s, want 2", o.Value)
	}
}

func TestReferencesAfterApply(t *testing.T) {
	t.Parallel()
	service := func(n int) schema.Address {
		return schema.Address{Kind: schema.KindActorService, Name: "s", Key: schema.IntKey(n)}
	}
	many := func(n int) schema.Address {
		return schema.Address{Kind: schema.KindJob, Name: "many", Key: schema.IntKey(n)}
	}
	keyed := func(k string) schema.Address {
		return schema.Address{Kind: schema.KindJob, Name: "keyed", Key: schema.StringKey(k)}
	}
	c := mustEvaluate(t, referencesSource(), eval.Options{Computed: map[schema.Address]schema.Computed{
		job("one"): {
			ID: "1", Addresses: []string{"10.0.0.1", "10.0.0.2"}, Ports: map[string]int{"http": 8080, "admin": 1},
			Slices: []string{"s1"}, Status: schema.JobRunning,
		},
		many(0):    {ID: "m0", Addresses: []string{"h0"}},
		many(1):    {ID: "m1", Addresses: []string{"h1"}},
		keyed("a"): {ID: "ka"},
		keyed("b"): {ID: "kb"},
		{Kind: schema.KindJob, Group: "g", Name: "in"}: {ID: "gin"},
		service(0): {Addresses: []string{"10.1.0.1"}, Ports: map[string]int{"rpc": 9000, "admin": 9001}},
		service(1): {Addresses: []string{"fd00::1"}, Ports: map[string]int{"rpc": 9002, "admin": 9003}},
	}})
	want := []string{
		"x", "1", "10.0.0.1", `["10.0.0.1","10.0.0.2"]`, "8080", "s1", "running", "one",
		"m1", "h0,h1", "2", "ka", "a=ka,b=kb", "gin", `["10.1.0.1:9000","[fd00::1]:9002"]`, "2",
	}
	if diff := cmp.Diff(want, texts(t, reader(t, c).Command)); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if got, want := string(c.Outputs["endpoints"].Value), `["10.1.0.1:9000","[fd00::1]:9002"]`; got != want {
		t.Errorf("output endpoints = %s, want %s", got, want)
	}
}

// TestPartlyKnown: what is known of an instance is used before the rest is.
func TestPartlyKnown(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, `
		job "a" {
			command = ["x"]
			resources { ports = { http = 80, free = 0 } }
		}
		job "reader" { command = [job.a.id, job.a.address, job.a.ports.http, job.a.ports.free] }`,
		eval.Options{Computed: map[schema.Address]schema.Computed{job("a"): {ID: "7"}}})
	const later = "(known after apply)"
	if diff := cmp.Diff([]string{"7", later, "80", later}, texts(t, reader(t, c).Command)); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, `
		namespace "n" {}
		reservation "r" {; min {}; }
		locals {
			direct   = job.a.address
			indirect = "http://${local.direct}"
		}
		job "a" { command = ["x"] }
		job "b" {
			count   = 2
			command = ["x"]
		}
		job_group "g" {
			depends_on = [job.a]
			job "in" {
				command    = ["x"]
				depends_on = [job.b[1], job.b[0]]
			}
		}
		actor_service "s" { command = ["x"] }
		job "reader" {
			namespace  = namespace.n
			depends_on = [job_group.g, actor_service.s, job.b[0], job.b, job.b]
			command    = [local.indirect, job.b[1].id]
			resources { reservation = reservation.r }
			environment {
				env = { B = job.b[0].id }
			}
		}`, eval.Options{})
	show := func(addrs []schema.Address) []string {
		shown := []string{}
		for _, a := range addrs {
			shown = append(shown, a.String())
		}
		return shown
	}
	r := reader(t, c)
	if diff := cmp.Diff([]string{"job_group.g", "job.b", "actor_service.s"}, show(r.DependsOn)); diff != "" {
		t.Errorf("stated (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"job.a", "job.b[0]", "job.b[1]"}, show(r.Uses)); diff != "" {
		t.Errorf("implied (-want +got):\n%s", diff)
	}
	in := c.Desired.Jobs[len(c.Desired.Jobs)-2]
	if diff := cmp.Diff([]string{"job.a", "job.b[0]", "job.b[1]"}, show(in.DependsOn)); diff != "" {
		t.Errorf("stated by %s and its group (-want +got):\n%s", in.Addr, diff)
	}
}

func TestOrderedLongChain(t *testing.T) {
	t.Parallel()
	const n = 200_000
	nodes := make([]int, n)
	for i := range nodes {
		nodes[i] = i
	}
	order, cycles := configs.Ordered(nodes, func(i int) []int {
		if i+1 < n {
			return []int{i + 1}
		}
		return nil
	})
	if len(cycles) != 0 || len(order) != n || order[0] != n-1 || order[n-1] != 0 {
		t.Errorf("a chain of %d gives %d in order and %d cycles", n, len(order), len(cycles))
	}
}
