package lang

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// actorVariables are those of a replica, as they are shown.
func actorVariables(t *testing.T, c *schema.Config, addr string) map[string]string {
	t.Helper()
	for _, j := range c.Desired.Jobs {
		if j.Addr.String() != addr {
			continue
		}
		shown := map[string]string{}
		for name, text := range j.Environment.Env {
			shown[strings.TrimPrefix(name, "FRAY_ACTOR_")] = text.String()
		}
		return shown
	}
	t.Fatalf("there is no %s", addr)
	return nil
}

func TestActorVariables(t *testing.T) {
	t.Parallel()
	for _, test := range describedActors() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := mustEvaluate(t, "job \"j\" { command = [\"x\"] }\nactor_service \"s\" {\nreplicas = 2\n"+test.src+"\n}", eval.Options{})
			test.want["NAMES"] = `["s","s_1"]`
			got := actorVariables(t, c, "actor_service.s[1]")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			if got := actorVariables(t, c, "actor_service.s[0]")["NAMES"]; got != `["s","s_0"]` {
				t.Errorf("the names of replica 0 are %s", got)
			}
		})
	}
}

// TestActorSecrets: a sensitive argument hides all of them, and nothing else.
func TestActorSecrets(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, `
		variable "token" {
			default   = "hunter2"
			sensitive = true
		}
		actor_service "s" {
			actor {
				class = "m:C"
				args  = { path = "p", deep = [{ token = var.token }] }
			}
		}`, eval.Options{})
	env := c.Desired.Jobs[0].Environment.Env
	args := env[schema.ActorArgsVariable]
	clear, err := args.Reveal(nil)
	if want := `{"deep":[{"token":"hunter2"}],"path":"p"}`; !args.IsSensitive() || clear != want || err != nil {
		t.Errorf("got %#v, in clear %s, %v; want it sensitive, in clear %s", args, clear, err, want)
	}
	if env[schema.ActorClassVariable].IsSensitive() {
		t.Error("the class is sensitive")
	}
}

func TestActorNeeds(t *testing.T) {
	t.Parallel()
	implied := &schema.Health{
		HTTP: "/readyz", Port: "actor", Interval: schema.Duration(10 * time.Second), Timeout: schema.Duration(20 * time.Second),
		Threshold: 30, StartPeriod: schema.Duration(24 * time.Hour),
	}
	tests := []struct {
		name    string
		src     string
		command string
		ports   []schema.Port
		health  *schema.Health
	}{
		{"python", `actor { class = "m:C" }`, "python -m fray.host", []schema.Port{{Name: "actor"}}, implied},
		{"program", "command = [\"./serve\"]\nargs = [\"-v\"]\nactor { class = \"c\" }", "./serve -v", []schema.Port{{Name: "actor"}}, implied},
		{
			"ports", "actor { class = \"m:C\" }\nresources { ports = [\"web\", \"a\"] }", "python -m fray.host",
			[]schema.Port{{Name: "a"}, {Name: "actor"}, {Name: "web"}}, implied,
		},
		{
			"its port is fixed", "actor { class = \"m:C\" }\nresources { ports = { actor = 4000 } }", "python -m fray.host",
			[]schema.Port{{Name: "actor", Number: 4000}}, implied,
		},
		{
			"another check", "actor { class = \"m:C\" }\nhealth_check { tcp = true }", "python -m fray.host", []schema.Port{{Name: "actor"}},
			&schema.Health{TCP: true, Port: "actor", Interval: schema.Duration(10 * time.Second), Timeout: schema.Duration(5 * time.Second), Threshold: 3},
		},
		{"no actor", `command = ["x"]`, "x", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := mustEvaluate(t, "actor_service \"s\" {\n"+test.src+"\n}", eval.Options{})
			j := c.Desired.Jobs[0]
			if got := strings.Join(texts(t, j.Command), " "); got != test.command {
				t.Errorf("got the command %q, want %q", got, test.command)
			}
			if diff := cmp.Diff(test.ports, j.Resources.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.health, j.HealthCheck); diff != "" {
				t.Errorf("health check (-want +got):\n%s", diff)
			}
		})
	}
}

// TestActorEndpoints: they are those of the actors, whatever other ports there are.
func TestActorEndpoints(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"alone":            `actor { class = "m:C" }`,
		"beside others":    "actor { class = \"m:C\" }\nresources { ports = [\"aaa\", \"web\"] }",
		"with its own":     "actor { class = \"m:C\" }\nresources { ports = [\"aaa\", \"actor\"] }",
		"per replica":      "actor { class = \"m:C\" }\nresources { ports = [\"aaa${count.index}\"] }",
		"made dynamically": "dynamic \"actor\" {\n for_each = [1]\n content { class = \"m:C\" }\n}\nresources { ports = [\"aaa\"] }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := mustEvaluate(t, "actor_service \"s\" {\nreplicas = 2\n"+src+"\n}\noutput \"o\" { value = actor_service.s.endpoints }", eval.Options{
				Computed: map[schema.Address]schema.Computed{
					{Kind: schema.KindActorService, Name: "s", Key: schema.IntKey(0)}: {Addresses: []string{"10.0.0.1"}, Ports: map[string]int{"aaa": 1, "actor": 2, "web": 3}},
					{Kind: schema.KindActorService, Name: "s", Key: schema.IntKey(1)}: {Addresses: []string{"10.0.0.2"}, Ports: map[string]int{"aaa": 4, "actor": 5, "web": 6}},
				},
			})
			if got, want := string(c.Outputs["o"].Value), `["10.0.0.1:2","10.0.0.2:5"]`; got != want {
				t.Errorf("got the endpoints %s, want %s", got, want)
			}
		})
	}
}

// TestActorIgnored: what a lifecycle ignores of an actor block is what it became.
func TestActorIgnored(t *testing.T) {
	t.Parallel()
	for paths, want := range map[string][]string{
		"actor":                 {"environment.env.FRAY_ACTOR_ARGS", "environment.env.FRAY_ACTOR_CLASS", "environment.env.FRAY_ACTOR_OPTIONS"},
		"actor.args":            {"environment.env.FRAY_ACTOR_ARGS"},
		"actor.args[\"x\"]":     {"environment.env.FRAY_ACTOR_ARGS"},
		"actor.class, labels":   {"environment.env.FRAY_ACTOR_CLASS", "labels"},
		"actor.max_concurrency": {"environment.env.FRAY_ACTOR_OPTIONS"},
		"actor.allow_pickle":    {"environment.env.FRAY_ACTOR_OPTIONS"},

		"actor.concurrency_groups":         {"environment.env.FRAY_ACTOR_OPTIONS"},
		"actor.concurrency_groups[\"io\"]": {"environment.env.FRAY_ACTOR_OPTIONS"},
	} {
		t.Run(paths, func(t *testing.T) {
			t.Parallel()
			c := mustEvaluate(t, "actor_service \"s\" {\nactor { class = \"m:C\" }\nlifecycle { ignore_changes = ["+paths+"] }\n}", eval.Options{})
			if got := c.Desired.Jobs[0].Lifecycle.Ignore; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestActorArgsAreRefined: arguments that become known reach the replica without
// an evaluation of everything.
func TestActorArgsAreRefined(t *testing.T) {
	t.Parallel()
	source := parseText(t, `
		job "j" { command = ["x"] }
		actor_service "s" {
			actor {
				class = "m:C"
				args  = { peer = job.j.id }
			}
		}`)
	v, diags := source.Begin(eval.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	refined, diags := v.Refine(map[schema.Address]schema.Computed{job("j"): {ID: "j-1"}})
	if diags.HasErrors() || len(refined.Jobs) != 1 || refined.Whole != nil {
		t.Fatalf("got %d jobs, whole %v, %v; want one job", len(refined.Jobs), refined.Whole != nil, diags)
	}
	if got, want := refined.Jobs[0].Environment.Env[schema.ActorArgsVariable], schema.Plain(`{"peer":"j-1"}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
