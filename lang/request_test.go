package lang_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/schema"
)

func requestStack() *schema.Desired {
	flex := schema.Capacity{TPU: "v5litepod-16", Slices: 4}
	small := schema.Capacity{CPU: 8, Memory: 32 << 30, Slices: 2}
	return &schema.Desired{
		Providers: []schema.Provider{
			{Name: schema.ProviderGCP, Project: "p", Zones: []string{"us-west4-a", "us-central1-a"}, Cloud: schema.CloudSpec{Network: "n"}},
			{Name: schema.ProviderLocal, Slices: 3, CPU: 16, GPU: schema.GPU{Type: "h100", Count: 8}},
		},
		Namespaces: []schema.Namespace{{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}, MaxChips: 64, Users: []schema.UserShare{{Name: "ada", MaxChips: 16}}}},
		Reservations: []schema.Reservation{
			{Addr: schema.Address{Kind: schema.KindReservation, Name: "cpus"}, Provider: schema.ProviderGCP, Min: small, Max: small},
			{Addr: schema.LaunchedAddress(schema.KindReservation, "rl", "", "flex.1"), Provider: schema.ProviderGCP, Min: flex, Max: flex, Preemptible: true, Namespace: "rl"},
		},
	}
}

func words(list ...string) cty.Value {
	var vals []cty.Value
	for _, word := range list {
		vals = append(vals, cty.StringVal(word))
	}
	return cty.TupleVal(vals)
}

func fieldOf(name string, v cty.Value) request.Field {
	return request.Field{Attr: name, Path: name, Value: v}
}

func requestOf(fields ...request.Field) *request.Job {
	command := fieldOf("command", words("sleep", "9"))
	return &request.Job{
		Path: "requests[2]", Addr: schema.LaunchedAddress(schema.KindJob, "rl", "", "train"), Namespace: "rl",
		Fields: append([]request.Field{command}, fields...),
	}
}

func TestRequest(t *testing.T) {
	c := request.Context{Stack: requestStack(), Provider: schema.ProviderGCP, Region: "us-west4"}
	r := requestOf(
		fieldOf("resources.tpu", cty.StringVal("v5e-16")), fieldOf("resources.ports", cty.MapVal(map[string]cty.Value{"http": cty.NumberIntVal(0)})),
		fieldOf("environment.env", cty.MapVal(map[string]cty.Value{"A": cty.StringVal("own"), "B": cty.StringVal("b")})),
		fieldOf("retries.failure", cty.NumberIntVal(2)), fieldOf("health_check.tcp", cty.True),
		fieldOf("timeout", cty.StringVal("1h0m0s")), fieldOf("labels", cty.MapVal(map[string]cty.Value{"team": cty.StringVal("x")})),
	)
	r.Environment = schema.Environment{Image: "i", Env: map[string]schema.Text{"A": schema.Plain("parent"), "C": schema.Secret("c")}}
	r.Tasks = 8
	got, wrong := c.Job(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	want := &schema.Job{
		Addr: r.Addr, Namespace: "rl", Command: []schema.Text{schema.Plain("sleep"), schema.Plain("9")},
		Resources: schema.Resources{
			Provider: schema.ProviderGCP, TPU: "v5litepod-16", Slices: 2, Preemptible: true,
			Regions: []string{"us-west4"}, Ports: []schema.Port{{Name: "http"}}, Cloud: schema.CloudSpec{Network: "n"},
		},
		Environment: schema.Environment{Image: "i", Env: map[string]schema.Text{"A": schema.Plain("own"), "B": schema.Plain("b"), "C": schema.Secret("c")}},
		Retries:     schema.Retries{Failure: 2, Preemption: 100},
		HealthCheck: &schema.Health{TCP: true, Port: "http", Interval: schema.Duration(10 * time.Second), Timeout: schema.Duration(5 * time.Second), Threshold: 3},
		StopGrace:   schema.Duration(10 * time.Second), Timeout: schema.Duration(time.Hour), Labels: map[string]string{"team": "x"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(schema.Address{}, schema.Text{})); diff != "" {
		t.Error(diff)
	}
	if env := r.Environment.Env["A"]; env != schema.Plain("parent") {
		t.Errorf("the environment that it started from was changed: A = %s", env)
	}
}

// TestRequestIsTheLanguage: a request and the same in a file make the same job,
// or have the same mistakes.
func TestRequestIsTheLanguage(t *testing.T) {
	tests := []struct {
		name, hcl string
		fields    []request.Field
	}{
		{"tpu", `resources { tpu = "v5litepod-17" }`, []request.Field{fieldOf("resources.tpu", cty.StringVal("v5litepod-17"))}},
		{"cpu", `resources { cpu = -1 }`, []request.Field{fieldOf("resources.cpu", cty.NumberIntVal(-1))}},
		{"retries", `retries { failure = -7 }`, []request.Field{fieldOf("retries.failure", cty.NumberIntVal(-7))}},
		{"band", `band = "interactiv"`, []request.Field{fieldOf("band", cty.StringVal("interactiv"))}},
		{"timeout", `scheduling_timeout = "0s"`, []request.Field{fieldOf("scheduling_timeout", cty.StringVal("0s"))}},
		{"port of a check", "resources { ports = [\"http\", \"grpc\"] }\n health_check { tcp = true }", []request.Field{
			fieldOf("resources.ports", cty.MapVal(map[string]cty.Value{"http": cty.NumberIntVal(0), "grpc": cty.NumberIntVal(0)})), fieldOf("health_check.tcp", cty.True),
		}},
		{"zone on this machine", "resources {\n zones = [\"us-west4-a\"]\n cpu = 1\n }", []request.Field{fieldOf("resources.zones", words("us-west4-a")), fieldOf("resources.cpu", cty.NumberIntVal(1))}},
		{"fine", "resources {\n cpu = 2\n memory = 1024\n }\n priority = 3", []request.Field{
			fieldOf("resources.cpu", cty.NumberIntVal(2)), fieldOf("resources.memory", cty.NumberIntVal(1024)), fieldOf("priority", cty.NumberIntVal(3)),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := "job \"train\" {\n command = [\"sleep\", \"9\"]\n " + tt.hcl + "\n}\n"
			if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			source, diags := lang.Parse([]string{dir})
			config, more := source.Evaluate(eval.Options{})
			var fromFile, fromRequest []string
			for _, d := range append(diags, more...) {
				fromFile = append(fromFile, d.Summary+": "+d.Detail)
			}
			c := request.Context{Stack: &schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal}}}}
			job, wrong := c.Job(requestOf(tt.fields...))
			for _, m := range wrong {
				fromRequest = append(fromRequest, m.Summary+": "+m.Detail)
			}
			slices.Sort(fromFile)
			slices.Sort(fromRequest)
			if diff := cmp.Diff(fromFile, fromRequest); diff != "" {
				t.Errorf("the mistakes differ (- file, + request)\n%s", diff)
			}
			if config == nil {
				return
			}
			want := config.Desired.Jobs[0]
			want.Addr, want.Namespace = job.Addr, job.Namespace
			if diff := cmp.Diff(&want, job, cmpopts.EquateComparable(schema.Address{}, schema.Text{})); diff != "" {
				t.Errorf("the jobs differ (- file, + request)\n%s", diff)
			}
		})
	}
}

func TestRequestMistakes(t *testing.T) {
	tests := []struct {
		name   string
		change func(*request.Job)
		want   []string // PATH: SUMMARY, and after a | what the detail has
	}{
		{"all at once", func(r *request.Job) {
			r.Fields = []request.Field{
				fieldOf("resources.tpu", cty.StringVal("v5litpod-16")), fieldOf("environment.env", cty.MapVal(map[string]cty.Value{"a=b": cty.StringVal(""), "c": cty.StringVal("\x00")})),
				fieldOf("health_check.interval", cty.StringVal("1s")),
			}
			r.Tasks = -1
		}, []string{
			"requests[2].entrypoint: Missing attribute|command",
			`requests[2].environment.env["a=b"]: Invalid value for env|has a =`,
			`requests[2].environment.env["c"]: Invalid value for env|zero byte`,
			"requests[2].health_check: Nothing to check|",
			"requests[2].num_tasks: Invalid value for num_tasks|0 to 100000",
			`requests[2].resources.tpu: Invalid value for tpu|did you mean "v5litepod-16"?`,
		}},
		{"an argument", func(r *request.Job) { r.Fields[0].Value = words("a", "b\x00") }, []string{"requests[2].command[1]: Invalid value for command|Element 1"}},
		{"tasks that fit no slices", func(r *request.Job) {
			r.Fields = append(r.Fields, fieldOf("resources.tpu", cty.StringVal("v5litepod-16")))
			r.Tasks = 6
		}, []string{"requests[2].num_tasks: Invalid value for num_tasks|multiple of 4"}},
		{"tasks and slices", func(r *request.Job) {
			r.Fields = append(r.Fields, fieldOf("resources.slices", cty.NumberIntVal(2)))
			r.Tasks = 3
		}, []string{"requests[2].num_tasks: Invalid value for num_tasks|leave one of the two out"}},
		{"no such reservation", func(r *request.Job) { r.Reservation = "cpu" }, []string{`requests[2].resources.reservation_id: No such reservation|Did you mean "cpus"?`}},
		{"another shape", func(r *request.Job) {
			r.Reservation, r.ReservationPath = "rl/flex.1", "reservation_id"
			r.Fields = append(r.Fields, fieldOf("resources.tpu", cty.StringVal("v5litepod-4")), fieldOf("resources.zones", words("us-west4-a")))
		}, []string{"requests[2].resources.tpu: Other shape than its reservation|v5litepod-16", "requests[2].resources.zones: Shape stated twice|"}},
		{"more than the reservation", func(r *request.Job) {
			r.Reservation, r.Tasks = "rl/flex.1", 20
		}, []string{"requests[2].num_tasks: Larger than its reservation|need 5 slices"}},
		{"more than a machine", func(r *request.Job) {
			r.Reservation = "cpus"
			r.Fields = append(r.Fields, fieldOf("resources.cpu", cty.NumberIntVal(9)), fieldOf("resources.memory", cty.NumberIntVal(64<<30)))
		}, []string{"requests[2].resources.cpu: Larger than its reservation|9 cores", "requests[2].resources.memory: Larger than its reservation|32 GiB"}},
		{"a region without it", func(r *request.Job) {
			r.Fields = append(r.Fields, fieldOf("resources.tpu", cty.StringVal("v5litepod-4")), fieldOf("resources.regions", words("us-west2")))
		}, []string{"requests[2].resources.regions: Zone without this TPU|us-west4-a"}},
		{"uv and a bad hash", func(r *request.Job) {
			r.Environment.Callable = "xyz"
			r.Fields = append(r.Fields, fieldOf("environment.uv.python", cty.StringVal("")))
		}, []string{
			"requests[2].entrypoint.callable.sha256: Invalid value for sha256|64",
			"requests[2].environment.uv: uv without a project|upload",
			"requests[2].environment.uv.python: Invalid value for python|empty",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := request.Context{Stack: requestStack(), Provider: schema.ProviderGCP}
			r := requestOf()
			tt.change(r)
			_, wrong := c.Job(r)
			if len(wrong) != len(tt.want) {
				t.Fatalf("%d mistakes, want %d: %v", len(wrong), len(tt.want), wrong)
			}
			for i, m := range wrong {
				head, detail, _ := strings.Cut(tt.want[i], "|")
				if got := m.Path + ": " + m.Summary; got != head || !strings.Contains(m.Detail, detail) {
					t.Errorf("got %s (%s), want %s", got, m.Detail, tt.want[i])
				}
				if m.Missing != (m.Summary == "No such reservation") {
					t.Errorf("%s: missing is %t", m.Path, m.Missing)
				}
			}
		})
	}
}

// TestRequestOfMachines: a part of a machine is packed, a whole one is not.
func TestRequestOfMachines(t *testing.T) {
	c := request.Context{Stack: requestStack()}
	for _, tt := range []struct {
		name   string
		fields []request.Field
		packed bool
		cpu    float64
		memory schema.Bytes
	}{
		{"whole", nil, false, 8, 32 << 30},
		{"a part", []request.Field{fieldOf("resources.cpu", cty.NumberIntVal(2))}, true, 2, 0},
		{"memory only", []request.Field{fieldOf("resources.memory", cty.NumberIntVal(1<<30))}, true, 1, 1 << 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := requestOf(tt.fields...)
			r.Reservation = "cpus"
			j, wrong := c.Job(r)
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			if got := j.Resources; got.Packed != tt.packed || got.CPU != tt.cpu || got.Memory != tt.memory || got.Reservation != "cpus" || got.Provider != schema.ProviderGCP {
				t.Errorf("resources %+v, want packed %t, %g cores, %s", got, tt.packed, tt.cpu, tt.memory)
			}
		})
	}
}

func TestReservationRequest(t *testing.T) {
	c := request.Context{Stack: requestStack(), Provider: schema.ProviderGCP, Region: "us-west4"}
	r := &request.Reservation{Path: "config", Addr: schema.LaunchedAddress(schema.KindReservation, "rl", "", "f"), Namespace: "rl"}
	_, wrong := c.Reservation(r)
	if len(wrong) != 1 || wrong[0].Path != "config" {
		t.Errorf("of nothing: %v", wrong)
	}
	r.Fields = []request.Field{
		fieldOf("min.tpu", cty.StringVal("v5litepod-16")), fieldOf("min.slices", cty.NumberIntVal(3)),
		fieldOf("max.tpu", cty.StringVal("v5litepod-4")), fieldOf("max.slices", cty.NumberIntVal(2)),
	}
	_, wrong = c.Reservation(r)
	if len(wrong) != 2 || wrong[0].Path != "config.max" || wrong[1].Path != "config.min" {
		t.Errorf("of two shapes: %v", wrong)
	}
	r.Fields = []request.Field{
		fieldOf("min.tpu", cty.StringVal("v5e-16")), fieldOf("max.slices", cty.NumberIntVal(2)), fieldOf("ttl", cty.StringVal("1h0m0s")),
	}
	got, wrong := c.Reservation(r)
	if len(wrong) > 0 || got.Max.TPU != "v5litepod-16" || got.Max.Slices != 2 || got.Min.Slices != 1 || got.Growth != schema.GrowthOffer ||
		got.Namespace != "rl" || !got.Preemptible || !slices.Equal(got.Regions, []string{"us-west4"}) || got.TTL != schema.Duration(time.Hour) {
		t.Errorf("got %+v, %v", got, wrong)
	}
}

func TestNeverFits(t *testing.T) {
	job := func(name string, r schema.Resources) *schema.Job {
		return &schema.Job{Addr: schema.LaunchedAddress(schema.KindJob, "rl", "g", name), Namespace: "rl", Resources: r}
	}
	tpu := func(kind string, slices int, zones ...string) schema.Resources {
		return schema.Resources{Provider: schema.ProviderGCP, TPU: kind, Slices: slices, Zones: zones}
	}
	machine := func(slices int, cpu float64) schema.Resources {
		return schema.Resources{Provider: schema.ProviderLocal, CPU: cpu, Slices: slices}
	}
	gpus := func(kind string, count, slices int) schema.Resources {
		return schema.Resources{Provider: schema.ProviderLocal, GPU: schema.GPU{Type: kind, Count: count}, Slices: slices}
	}
	pool := schema.Resources{Provider: schema.ProviderGCP, Reservation: "rl/flex.1", TPU: "v5litepod-16", Slices: 3}
	part := schema.Resources{Provider: schema.ProviderGCP, Reservation: "cpus", Packed: true, CPU: 6, Slices: 3}
	ada := job("a", tpu("v5litepod-16", 2))
	ada.User = "ada"
	choice := func(all ...schema.Accelerator) schema.Resources {
		return schema.Resources{Provider: schema.ProviderLocal, Accelerators: all, TPU: all[0].TPU(), GPU: all[0].GPU(), Slices: 1}
	}
	tests := []struct {
		name  string
		jobs  []*schema.Job
		group *schema.JobGroup
		want  string // "" for one that may fit
	}{
		{"fits", []*schema.Job{job("a", tpu("v5litepod-16", 1)), job("b", machine(2, 8))}, &schema.JobGroup{SameZone: true}, ""},
		{"slices of a provider", []*schema.Job{job("a", machine(2, 1)), job("b", machine(2, 1))}, nil, "4 slices are needed at once, and provider local has 3"},
		{"cores of a provider", []*schema.Job{job("a", machine(2, 9))}, nil, "18 cores are needed at once, and provider local has 16"},
		{"GPUs of a provider", []*schema.Job{job("a", gpus("h100", 4, 3))}, nil, "12 GPUs are needed at once, and provider local has 8"},
		{"another GPU", []*schema.Job{job("a", gpus("t4", 1, 1))}, nil, "a task needs 1 t4, and provider local has 8 h100"},
		{"none of the alternatives", []*schema.Job{job("a", choice("t4:1", "a100:2"))}, nil, "a task needs 1 t4 or 2 a100, and provider local has 8 h100"},
		{"one of the alternatives", []*schema.Job{job("a", choice("t4:1", "h100:2"))}, nil, ""},
		{"the least of the alternatives", []*schema.Job{job("a", choice("h100:16", "h100:12"))}, nil, "12 GPUs are needed at once, and provider local has 8"},
		{"GPUs that fit", []*schema.Job{job("a", gpus("h100", 2, 2)), job("b", gpus("", 4, 1))}, nil, ""},
		{"GPUs of the namespace", []*schema.Job{job("a", schema.Resources{Provider: schema.ProviderGCP, GPU: schema.GPU{Type: "h100", Count: 8}, Slices: 9})}, nil, "72 chips are needed at once, the limit is 64"},
		{"a reservation together", []*schema.Job{job("a", pool), job("b", pool)}, nil, "need 6 slices of reservation.rl/flex.1, which has 4"},
		{"parts of machines", []*schema.Job{job("a", part)}, nil, "need 18 cores of reservation.cpus, which has 16"},
		{"chips of the namespace", []*schema.Job{job("a", tpu("v5litepod-64", 1)), job("b", tpu("v5litepod-4", 1))}, nil, "68 chips are needed at once, the limit is 64, which is more than namespace.rl may have"},
		{"chips of the user", []*schema.Job{ada}, nil, "the user ada may have"},
		{"zones apart", []*schema.Job{job("a", tpu("v5litepod-4", 1, "us-west4-a")), job("b", tpu("v5litepod-4", 1, "us-central1-a"))}, &schema.JobGroup{SameZone: true}, "no zone has room for all of the group: b can be in us-central1-a, others only in us-west4-a"},
		{"regions apart", []*schema.Job{job("a", tpu("v5litepod-4", 1, "us-west4-a")), job("b", tpu("v5litepod-4", 1, "us-central1-a"))}, &schema.JobGroup{SameRegion: true}, "no region has room"},
		{"apart and not tied", []*schema.Job{job("a", tpu("v5litepod-4", 1, "us-west4-a")), job("b", tpu("v5litepod-4", 1, "us-central1-a"))}, &schema.JobGroup{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := request.Context{Stack: requestStack()}
			got := c.NeverFits(tt.jobs, tt.group)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestScopedLaunchedNames: what is launched may have dots in its name.
func TestScopedLaunchedNames(t *testing.T) {
	for _, namespace := range []string{"rl", "module.eval.rl", `module.eval["a/b.c"].rl`} {
		addr := schema.LaunchedAddress(schema.KindReservation, namespace, "", "flex-1.5/b.c")
		if got := schema.ScopedAddress(schema.KindReservation, addr.Scoped()); got != addr {
			t.Errorf("ScopedAddress(%q) = %#v, want %#v", addr.Scoped(), got, addr)
		}
	}
}

// Under --local what names places of a cloud is ignored, in requests as in files.
func TestRequestUnderLocal(t *testing.T) {
	c := request.Context{Stack: &schema.Desired{Local: true}}
	region := cty.TupleVal([]cty.Value{cty.StringVal("us-west4")})
	job, wrong := c.Job(requestOf(
		fieldOf("resources.tpu", cty.StringVal("v5e-4")), fieldOf("resources.regions", region),
		fieldOf("resources.zones", cty.TupleVal([]cty.Value{cty.StringVal("us-west4-a")})), fieldOf("resources.provider", cty.StringVal("gcp")),
	))
	if len(wrong) > 0 || job.Resources.Provider != schema.ProviderLocal || len(job.Resources.Regions)+len(job.Resources.Zones) > 0 {
		t.Errorf("got %v and %+v, want a job of this machine", wrong, job.Resources)
	}
	pool, wrong := c.Reservation(&request.Reservation{Path: "config", Addr: schema.LaunchedAddress(schema.KindReservation, "n", "", "pool"), Fields: []request.Field{
		fieldOf("min.tpu", cty.StringVal("v5e-4")), fieldOf("max.tpu", cty.StringVal("v5e-4")), fieldOf("regions", region),
	}})
	if len(wrong) > 0 || pool.Provider != schema.ProviderLocal || len(pool.Regions) > 0 {
		t.Errorf("got %v and %+v, want a reservation of this machine", wrong, pool)
	}
	c.Stack.Local = false
	if _, wrong := c.Job(requestOf(fieldOf("resources.regions", region))); len(wrong) == 0 {
		t.Error("without --local regions of this machine are taken")
	}
}
