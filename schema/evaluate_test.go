package schema

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
func mustEvaluate(t *testing.T, src string, opts Options) *Config {
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
		cmpopts.EquateComparable(Address{}, Text{}),
		cmpopts.EquateEmpty(),
	}
}

func job(name string) Address { return Address{Kind: KindJob, Name: name} }

func TestDefaults(t *testing.T) {
	t.Parallel()
	got := mustEvaluate(t, `job "a" { command = ["true"] }`, Options{}).Desired
	want := Desired{
		Providers: []Provider{{Name: ProviderLocal}},
		Jobs: []Job{{
			Addr:      job("a"),
			Namespace: "a",
			Command:   []Text{Plain("true")},
			Resources: Resources{Provider: ProviderLocal, CPU: 1, Slices: 1},
			Retries:   Retries{Failure: 0, Preemption: 100},
			StopGrace: Duration(10 * time.Second),
		}},
	}
	if diff := cmp.Diff(want, got, equal()); diff != "" {
		t.Errorf("desired (-want +got):\n%s", diff)
	}
}

// TestDecode checks one part of what a configuration decodes to.
func TestDecode(t *testing.T) {
	t.Parallel()
	first := func(c *Config) Job { return c.Desired.Jobs[0] }
	tests := map[string]struct {
		src  string
		opts Options
		part func(*Config) any
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
			part: func(c *Config) any { return first(c).Resources },
			want: Resources{
				Provider: ProviderLocal, CPU: 0.5, Memory: 3 << 39, Disk: 1000, Slices: 2, Preemptible: true,
				Ports: []Port{{Name: "admin"}, {Name: "http"}},
			},
		},
		"tpu": {
			src:  `job "a" {; command = ["x"]; resources { tpu = "v5e-16" }; }`,
			part: func(c *Config) any { return first(c).Resources },
			want: Resources{Provider: ProviderLocal, TPU: "v5litepod-16", Slices: 1, Preemptible: true},
		},
		"fixed ports": {
			src:  `job "a" {; command = ["x"]; resources { ports = { http = 8080, grpc = 0 } }; }`,
			part: func(c *Config) any { return first(c).Resources.Ports },
			want: []Port{{Name: "grpc"}, {Name: "http", Number: 8080}},
		},
		"args follow command": {
			src:  `job "a" {; command = ["x", 1, true]; args = ["--lr", 0.1]; }`,
			part: func(c *Config) any { return first(c).Command },
			want: []Text{Plain("x"), Plain("1"), Plain("true"), Plain("--lr"), Plain("0.1")},
		},
		"environment": {
			src: `job "a" {
				command = ["x"]
				environment {
					image = "python:3.12"
					env   = { A = "x", N = 1 }
				}
			}`,
			part: func(c *Config) any { return first(c).Environment },
			want: Environment{Image: "python:3.12", Env: map[string]Text{"A": Plain("x"), "N": Plain("1")}},
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
			part: func(c *Config) any { return *first(c).HealthCheck },
			want: Health{HTTP: "/healthz", Port: "http", Interval: Duration(10 * time.Second), Timeout: Duration(1500 * time.Millisecond), Threshold: 3},
		},
		"exec health": {
			src:  `job "a" {; command = ["x"]; health_check { exec = ["test", "-e", "ready"] }; }`,
			part: func(c *Config) any { return first(c).HealthCheck.Exec },
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
			part: func(c *Config) any {
				j := first(c)
				return Job{StopGrace: j.StopGrace, Timeout: j.Timeout, Priority: j.Priority, Band: j.Band, Labels: j.Labels, Retries: j.Retries}
			},
			want: Job{
				StopGrace: Duration(time.Minute), Timeout: Duration(2 * time.Hour), Priority: -3, Band: BandBatch,
				Labels: map[string]string{"team": "rl", "n": "1"}, Retries: Retries{Failure: Unlimited, Preemption: 2},
			},
		},
		"the named interactive band is the default": {
			src:  `job "a" {; command = ["x"]; band = "interactive"; }`,
			part: func(c *Config) any { return first(c).Band },
			want: Band(""),
		},
		"a service restarts without end": {
			src:  `actor_service "s" { command = ["x"] }`,
			part: func(c *Config) any { return first(c).Retries },
			want: Retries{Failure: Unlimited, Preemption: Unlimited},
		},
		"a service's restart": {
			src: `actor_service "s" {
				command = ["x"]
				restart {
					max = 3
					on  = "always"
				}
			}`,
			part: func(c *Config) any { return first(c).Retries },
			want: Retries{Failure: 3, Preemption: 3, OnSuccess: true},
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
			part: func(c *Config) any { return []any{c.Desired.Reservations[0], first(c).Resources} },
			want: []any{
				Reservation{
					Addr: Address{Kind: KindReservation, Name: "pool"}, Provider: ProviderLocal,
					Min: Capacity{TPU: "v5litepod-16"}, Max: Capacity{TPU: "v5litepod-16", Slices: 4},
					TTL: Duration(12 * time.Hour), Priority: 5,
				},
				Resources{Provider: ProviderLocal, Reservation: "pool", TPU: "v5litepod-16", Slices: 2},
			},
		},
		"max defaults to min, the shape to cpu": {
			src:  `reservation "pool" {; min { slices = 3 }; }`,
			part: func(c *Config) any { return c.Desired.Reservations[0].Max },
			want: Capacity{CPU: 1, Slices: 3},
		},
		"one end gives the other its shape": {
			src: `reservation "pool" {
				min {
					cpu = 2
					memory = "1g"
				}
				max { slices = 4 }
			}`,
			part: func(c *Config) any { return c.Desired.Reservations[0].Max },
			want: Capacity{CPU: 2, Memory: 1 << 30, Slices: 4},
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
			part: func(c *Config) any { return []any{c.Desired.Reservations[0], first(c).Resources} },
			want: []any{
				Reservation{
					Addr: Address{Kind: KindReservation, Name: "pool"}, Provider: ProviderLocal, Namespace: "rl",
					Min: Capacity{CPU: 2, Disk: 10 << 30}, Max: Capacity{CPU: 2, Disk: 10 << 30, Slices: 4},
					IdleTimeout: Duration(90 * time.Second), Growth: GrowthOffer,
				},
				Resources{Provider: ProviderLocal, Reservation: "pool", CPU: 2, Disk: 10 << 30, Slices: 1},
			},
		},
		"provider limits": {
			src: `provider "local" {
				cpu = 4
				memory = "8GB"
				slices = 3
			}`,
			part: func(c *Config) any { return c.Desired.Providers },
			want: []Provider{{Name: ProviderLocal, CPU: 4, Memory: 8e9, Slices: 3}},
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
			part: func(c *Config) any {
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
			part: func(c *Config) any { return c.Desired.Groups },
			want: []JobGroup{{Addr: Address{Kind: KindJobGroup, Name: "g"}, Namespace: "g", SameZone: true}},
		},
		"controller": {
			src:  `controller {}`,
			part: func(c *Config) any { return *c.Desired.Controller },
			want: Controller{Provider: ProviderLocal},
		},
		"null is absent": {
			src:  `job "a" {; command = ["x"]; stop_grace = null; resources { slices = null }; }`,
			part: func(c *Config) any { return []any{first(c).StopGrace, first(c).Resources.Slices} },
			want: []any{Duration(10 * time.Second), 1},
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
			opts: Options{Local: true},
			part: func(c *Config) any {
				return []any{c.Desired.Providers, c.Desired.Reservations[0].Provider, first(c).Resources}
			},
			want: []any{[]Provider{{Name: ProviderLocal, Slices: 3}}, ProviderLocal, Resources{Provider: ProviderLocal, CPU: 1, Slices: 1}},
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
		}`, Options{})
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
