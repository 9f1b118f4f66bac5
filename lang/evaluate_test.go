package lang

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// parseText writes source as the only file of a new directory and parses it. A
// semicolon stands for the end of a line.
func parseText(tb testing.TB, src string) *Source {
	tb.Helper()
	dir := tb.TempDir()
	writeFile(tb, filepath.Join(dir, "main.hcl"), []byte(strings.ReplaceAll(src, ";", "\n")))
	s, diags := Parse([]string{dir})
	if diags.HasErrors() {
		tb.Fatalf("parse: %v", diags)
	}
	return s
}

// mustEvaluate evaluates source that has no mistake.
func mustEvaluate(t *testing.T, src string, opts eval.Options) *schema.Config {
	t.Helper()
	c, diags := parseText(t, src).Evaluate(opts)
	if diags.HasErrors() {
		t.Fatalf("evaluate: %v\n%s", diags, src)
	}
	return c
}

// equal compares specs; addresses, keys and texts by ==.
func equal() cmp.Option {
	return cmp.Options{
		cmpopts.EquateComparable(schema.Address{}, schema.Text{}),
		cmpopts.EquateEmpty(),
	}
}

func job(name string) schema.Address { return schema.Address{Kind: schema.KindJob, Name: name} }

func TestDefaults(t *testing.T) {
	t.Parallel()
	got := mustEvaluate(t, `job "a" { command = ["true"] }`, eval.Options{}).Desired
	want := schema.Desired{
		Providers: []schema.Provider{{Name: schema.ProviderLocal}},
		Jobs: []schema.Job{{
			Addr:      job("a"),
			Namespace: "a",
			Command:   []schema.Text{schema.Plain("true")},
			Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
			Retries:   schema.Retries{Failure: 0, Preemption: 100},
			StopGrace: schema.Duration(10 * time.Second),
		}},
	}
	if diff := cmp.Diff(want, got, equal()); diff != "" {
		t.Errorf("desired (-want +got):\n%s", diff)
	}
}

// TestDecode checks one part of what a configuration decodes to.
func TestDecode(t *testing.T) {
	t.Parallel()
	first := func(c *schema.Config) schema.Job { return c.Desired.Jobs[0] }
	tests := map[string]struct {
		src  string
		opts eval.Options
		part func(*schema.Config) any
		want any
	}{
		"resources": {
			src: `job "a" {
				command = ["x"]
				resources {
					cpu    = 0.5
					memory = "1.5TiB"
					disk   = 1000
					slices = "2"
					preemptible = true
					ports  = ["http", "admin"]
				}
			}`,
			part: func(c *schema.Config) any { return first(c).Resources },
			want: schema.Resources{
				Provider: schema.ProviderLocal, CPU: 0.5, Memory: 3 << 39, Disk: 1000, Slices: 2, Preemptible: true,
				Ports: []schema.Port{{Name: "admin"}, {Name: "http"}},
			},
		},
		"tpu": {
			src:  `job "a" {; command = ["x"]; resources { tpu = "v5e-16" }; }`,
			part: func(c *schema.Config) any { return first(c).Resources },
			want: schema.Resources{Provider: schema.ProviderLocal, TPU: "v5litepod-16", Slices: 1, Preemptible: true},
		},
		"fixed ports": {
			src:  `job "a" {; command = ["x"]; resources { ports = { http = 8080, grpc = 0 } }; }`,
			part: func(c *schema.Config) any { return first(c).Resources.Ports },
			want: []schema.Port{{Name: "grpc"}, {Name: "http", Number: 8080}},
		},
		"args follow command": {
			src:  `job "a" {; command = ["x", 1, true]; args = ["--lr", 0.1]; }`,
			part: func(c *schema.Config) any { return first(c).Command },
			want: []schema.Text{schema.Plain("x"), schema.Plain("1"), schema.Plain("true"), schema.Plain("--lr"), schema.Plain("0.1")},
		},
		"environment": {
			src: `job "a" {
				command = ["x"]
				environment {
					image = "python:3.12"
					env   = { A = "x", N = 1 }
				}
			}`,
			part: func(c *schema.Config) any { return first(c).Environment },
			want: schema.Environment{Image: "python:3.12", Env: map[string]schema.Text{"A": schema.Plain("x"), "N": schema.Plain("1")}},
		},
		"health": {
			src: `job "a" {
				command = ["x"]
				resources { ports = ["http"] }
				health_check {
					http = "/healthz"
					timeout = "1500ms"
				}
			}`,
			part: func(c *schema.Config) any { return *first(c).HealthCheck },
			want: schema.Health{HTTP: "/healthz", Port: "http", Interval: schema.Duration(10 * time.Second), Timeout: schema.Duration(1500 * time.Millisecond), Threshold: 3},
		},
		"exec health": {
			src:  `job "a" {; command = ["x"]; health_check { exec = ["test", "-e", "ready"] }; }`,
			part: func(c *schema.Config) any { return first(c).HealthCheck.Exec },
			want: []string{"test", "-e", "ready"},
		},
		"settings of a job": {
			src: `job "a" {
				command = ["x"]
				stop_grace = "1m"
				timeout = "2h"
				priority = -3
				band = "batch"
				labels = { team = "rl", n = 1 }
				retries {
					failure = -1
					preemption = 2
				}
			}`,
			part: func(c *schema.Config) any {
				j := first(c)
				return schema.Job{StopGrace: j.StopGrace, Timeout: j.Timeout, Priority: j.Priority, Band: j.Band, Labels: j.Labels, Retries: j.Retries}
			},
			want: schema.Job{
				StopGrace: schema.Duration(time.Minute), Timeout: schema.Duration(2 * time.Hour), Priority: -3, Band: schema.BandBatch,
				Labels: map[string]string{"team": "rl", "n": "1"}, Retries: schema.Retries{Failure: schema.Unlimited, Preemption: 2},
			},
		},
		"the named interactive band is the default": {
			src:  `job "a" {; command = ["x"]; band = "interactive"; }`,
			part: func(c *schema.Config) any { return first(c).Band },
			want: schema.Band(""),
		},
		"a service restarts without end": {
			src:  `actor_service "s" { command = ["x"] }`,
			part: func(c *schema.Config) any { return first(c).Retries },
			want: schema.Retries{Failure: schema.Unlimited, Preemption: schema.Unlimited},
		},
		"a service's restart": {
			src: `actor_service "s" {
				command = ["x"]
				restart {
					max = 3
					on  = "always"
				}
			}`,
			part: func(c *schema.Config) any { return first(c).Retries },
			want: schema.Retries{Failure: 3, Preemption: 3, OnSuccess: true},
		},
		"a reservation's shape becomes the job's": {
			src: `reservation "pool" {
				max {
					tpu    = "v5litepod-16"
					slices = 4
				}
				preemptible = false
				ttl = "12h"
				priority = 5
			}
			job "a" {
				command = ["x"]
				resources {
					reservation = reservation.pool
					slices = 2
				}
			}`,
			part: func(c *schema.Config) any { return []any{c.Desired.Reservations[0], first(c).Resources} },
			want: []any{
				schema.Reservation{
					Addr: schema.Address{Kind: schema.KindReservation, Name: "pool"}, Provider: schema.ProviderLocal,
					Min: schema.Capacity{TPU: "v5litepod-16"}, Max: schema.Capacity{TPU: "v5litepod-16", Slices: 4},
					TTL: schema.Duration(12 * time.Hour), Priority: 5,
				},
				schema.Resources{Provider: schema.ProviderLocal, Reservation: "pool", TPU: "v5litepod-16", Slices: 2},
			},
		},
		"max defaults to min, the shape to cpu": {
			src:  `reservation "pool" {; min { slices = 3 }; }`,
			part: func(c *schema.Config) any { return c.Desired.Reservations[0].Max },
			want: schema.Capacity{CPU: 1, Slices: 3},
		},
		"one end gives the other its shape": {
			src: `reservation "pool" {
				min {
					cpu = 2
					memory = "1g"
				}
				max { slices = 4 }
			}`,
			part: func(c *schema.Config) any { return c.Desired.Reservations[0].Max },
			want: schema.Capacity{CPU: 2, Memory: 1 << 30, Slices: 4},
		},
		"a pool that grows": {
			src: `namespace "rl" {}
			reservation "pool" {
				namespace    = namespace.rl
				idle_timeout = "90s"
				growth       = "offer"
				min { slices = 0 }
				max {
					cpu    = 2
					disk   = "10g"
					slices = 4
				}
			}
			job "a" {
				command = ["x"]
				resources { reservation = reservation.pool }
			}`,
			part: func(c *schema.Config) any { return []any{c.Desired.Reservations[0], first(c).Resources} },
			want: []any{
				schema.Reservation{
					Addr: schema.Address{Kind: schema.KindReservation, Name: "pool"}, Provider: schema.ProviderLocal, Namespace: "rl",
					Min: schema.Capacity{CPU: 2, Disk: 10 << 30}, Max: schema.Capacity{CPU: 2, Disk: 10 << 30, Slices: 4},
					IdleTimeout: schema.Duration(90 * time.Second), Growth: schema.GrowthOffer,
				},
				schema.Resources{Provider: schema.ProviderLocal, Reservation: "pool", CPU: 2, Disk: 10 << 30, Slices: 1},
			},
		},
		"provider limits": {
			src: `provider "local" {
				cpu = 4
				memory = "8GB"
				slices = 3
			}`,
			part: func(c *schema.Config) any { return c.Desired.Providers },
			want: []schema.Provider{{Name: schema.ProviderLocal, CPU: 4, Memory: 8e9, Slices: 3}},
		},
		"namespaces": {
			src: `namespace "n" { max_chips = 8 }
			job "own" { command = ["x"] }
			job "given" {
				command = ["x"]
				namespace = namespace.n
			}
			job_group "g" {
				job "in" { command = ["x"] }
			}
			job_group "h" {
				namespace = namespace.n
				job "in" { command = ["x"] }
			}
			actor_service "s" { command = ["x"] }`,
			part: func(c *schema.Config) any {
				m := map[string]string{}
				for _, j := range c.Desired.Jobs {
					m[j.Addr.String()] = j.Namespace
				}
				return m
			},
			want: map[string]string{
				"job.own": "own", "job.given": "n", "job_group.g.job.in": "g", "job_group.h.job.in": "n", "actor_service.s[0]": "s",
			},
		},
		"group": {
			src: `job_group "g" {
				same_zone = true
				job "in" { command = ["x"] }
			}`,
			part: func(c *schema.Config) any { return c.Desired.Groups },
			want: []schema.JobGroup{{Addr: schema.Address{Kind: schema.KindJobGroup, Name: "g"}, Namespace: "g", SameRegion: true, SameZone: true}},
		},
		"controller": {
			src:  `controller {}`,
			part: func(c *schema.Config) any { return *c.Desired.Controller },
			want: schema.Controller{Provider: schema.ProviderLocal},
		},
		"null is absent": {
			src:  `job "a" {; command = ["x"]; stop_grace = null; resources { slices = null }; }`,
			part: func(c *schema.Config) any { return []any{first(c).StopGrace, first(c).Resources.Slices} },
			want: []any{schema.Duration(10 * time.Second), 1},
		},
		"local maps gcp onto this machine": {
			src: `provider "gcp" {
				project = "p"
				zones = ["us-west4-a"]
			}
			provider "local" { slices = 3 }
			reservation "r" {
				provider = "gcp"
				max { tpu = "v4-8" }
			}
			job "a" {
				command = ["x"]
				resources {
					provider = "gcp"
					machine_type = "n2-standard-8"
					zones = ["x"]
				}
			}`,
			opts: eval.Options{Local: true},
			part: func(c *schema.Config) any {
				return []any{c.Desired.Providers, c.Desired.Reservations[0].Provider, first(c).Resources}
			},
			want: []any{[]schema.Provider{{Name: schema.ProviderLocal, Slices: 3}}, schema.ProviderLocal, schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1}},
		},
	}
	tests["a group with a service and a reservation"] = struct {
		src  string
		opts eval.Options
		part func(*schema.Config) any
		want any
	}{
		src: `
		job_group "g" {
			same_region = false
			reservation "pool" {
				max { slices = 2 }
			}
			actor_service "s" {
				replicas = 2
				command  = ["serve", "${count.index}"]
				resources { reservation = job_group.g.reservation.pool }
			}
			job "j" {
				command = concat(["train"], job_group.g.actor_service.s.endpoints)
			}
		}`,
		part: func(c *schema.Config) any {
			var addrs []string
			for i := range c.Desired.Jobs {
				j := &c.Desired.Jobs[i]
				addrs = append(addrs, j.Addr.String(), j.Namespace, j.Resources.Reservation)
			}
			return []any{addrs, c.Desired.Groups[0].SameRegion, c.Desired.Reservations[0].Addr.String(), c.Desired.Jobs[0].Uses}
		},
		want: []any{
			[]string{"job_group.g.job.j", "g", "", "job_group.g.actor_service.s[0]", "g", "job_group.g.pool", "job_group.g.actor_service.s[1]", "g", "job_group.g.pool"},
			false, "job_group.g.reservation.pool", []schema.Address{{Kind: schema.KindActorService, Group: "g", Name: "s"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.part(mustEvaluate(t, test.src, test.opts))
			if diff := cmp.Diff(test.want, got, equal()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstances(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, `
		locals { sizes = { small = 1, big = 4 } }
		job "counted" {
			count   = 3
			command = ["x", count.index]
			labels  = { shared = "yes" }
		}
		job "mapped" {
			for_each = local.sizes
			command  = ["x", each.key]
			resources {
				cpu = each.value
			}
		}
		job "set" {
			for_each = toset(["b", "a"])
			command  = ["x", each.value]
		}
		job "none" {
			count   = 0
			command = ["x", count.index]
		}
		actor_service "s" {
			replicas = 2
			command  = ["x", "--replica=${count.index}"]
		}`, eval.Options{})
	got := make([]string, 0, len(c.Desired.Jobs))
	for _, j := range c.Desired.Jobs {
		got = append(got, fmt.Sprintf("%s %s %g", j.Addr, j.Command[1], j.Resources.CPU))
	}
	want := []string{
		"job.counted[0] 0 1", "job.counted[1] 1 1", "job.counted[2] 2 1",
		`job.mapped["big"] big 4`, `job.mapped["small"] small 1`,
		`job.set["a"] a 1`, `job.set["b"] b 1`,
		"actor_service.s[0] --replica=0 1", "actor_service.s[1] --replica=1 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
}
