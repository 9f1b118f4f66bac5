package environment

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// gang is an attempt over two slices of two hosts; the setting is that of the
// second host of the second slice.
func gang() Setting {
	run := &state.Run{
		Job:   schema.Address{Kind: schema.KindJob, Group: "g", Name: "train", Key: schema.IntKey(7)},
		JobID: "job-1", Attempt: 3, SliceIndex: 1, NumSlices: 2,
		Accelerator: "v5litepod-8",
		Coordinator: "127.1.0.1:4000", Megascale: "127.1.0.1:5000",
		Spec: schema.Job{Namespace: "rl", StopGrace: schema.Duration(2500 * time.Millisecond), Environment: schema.Environment{Env: map[string]schema.Text{
			"PLAIN": schema.Plain("p"), "TOKEN": schema.Secret("s3cret"), "HOME": schema.Plain("/mine"),
		}}},
		Peers: []state.Peer{
			{Slice: "a", Host: 0, Address: "127.1.0.1"}, {Slice: "a", Host: 1, Address: "127.1.0.2"},
			{Slice: "b", Host: 0, Address: "127.1.0.3"}, {Slice: "b", Host: 1, Address: "127.1.0.4"},
		},
	}
	return Setting{
		Base: []string{"PATH=/usr/bin", "HOME=/root", "FRAY_VAR_token=secret", "FRAY_STATE=x", "=odd", "novalue"},
		Run:  run, Task: 3, Nonce: "n", Ports: map[string]int{"http": 8080, "grpc-web": 9090},
		WorkDir: "/w", Workspace: "dev", Sealer: rot{}, Simulated: true,
		Cluster: "127.0.0.1:7777", Token: "t0ken", Zone: "us-west4-a", Callable: "/host/callables/abc",
		Program: "/host/fray",
	}
}

func asMap(t *testing.T, s Setting) map[string]string {
	t.Helper()
	entries, err := Of(s)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(entries) {
		t.Errorf("entries are not sorted: %q", entries)
	}
	env := map[string]string{}
	for _, e := range entries {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return env
}

func TestTaskEnvOfAGang(t *testing.T) {
	s := gang()
	s.Venv = "/venv"
	want := map[string]string{
		"FRAY_JOB_ID": "job-1", "FRAY_JOB_NAME": "train", "FRAY_NAMESPACE": "rl", "FRAY_WORKSPACE": "dev", "FRAY_ATTEMPT": "3",
		"FRAY_CLUSTER_ADDRESS": "127.0.0.1:7777", "FRAY_CLUSTER_SPEC": "fray://127.0.0.1:7777", "FRAY_CLUSTER_TOKEN": "t0ken",
		"FRAY_ZONE": "us-west4-a", "FRAY_REGION": "us-west4", "FRAY_CALLABLE": "/host/callables/abc", "FRAY_PROGRAM": "/host/fray",
		"FRAY_TASK_INDEX": "3", "FRAY_NUM_TASKS": "4", "FRAY_SLICE_INDEX": "1", "FRAY_NUM_SLICES": "2",
		"FRAY_HOST_ADDRESS": "127.1.0.4", "FRAY_INSTANCE_KEY": "7", "FRAY_TASK_NONCE": "n",
		"FRAY_PORT_HTTP": "8080", "FRAY_PORT_GRPC_WEB": "9090", "FRAY_STOP_GRACE": "2.5",
		"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "127.1.0.3,127.1.0.4", "TPU_ACCELERATOR_TYPE": "v5litepod-8",
		"TPU_NAME": "b", "TPU_CHIPS_PER_HOST_BOUNDS": "2,4,1", "TPU_SKIP_MDS_QUERY": "true", "PJRT_DEVICE": "TPU",
		"TPU_TOPOLOGY": "2x4", "TPU_HOST_BOUNDS": "1,1,1", "TPU_TOPOLOGY_WRAP": "false,false,false", "TPU_TOPOLOGY_ALT": "false",
		"TPU_RUNTIME_METRICS_PORTS": "8431,8432,8433,8434,8435,8436,8437,8438",
		"LIBTPU_INIT_ARGS":          "--xla_tpu_scoped_vmem_limit_kib=50000",
		"JAX_PLATFORMS":             "cpu", "JAX_COORDINATOR_ADDRESS": "127.1.0.1:4000", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3",
		"MEGASCALE_COORDINATOR_ADDRESS": "127.1.0.1:5000", "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1",
		"MEGASCALE_PORT": "5000",
		"PLAIN":          "p", "TOKEN": "s3cret", "HOME": "/mine",
		"PATH": "/venv/bin:/usr/bin", "PYTHONPATH": "/w:/w/src", "VIRTUAL_ENV": "/venv", "UV_PROJECT_ENVIRONMENT": "/venv",
		"PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void",
	}
	if diff := cmp.Diff(want, asMap(t, s)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestTaskEnvVariants(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Setting)
		want   map[string]string // "-": not there
	}{
		{"real TPU host", func(s *Setting) { s.Simulated = false }, map[string]string{"JAX_PLATFORMS": "tpu,cpu"}},
		{"v6e", func(s *Setting) { s.Run.Accelerator = "v6e-16" }, map[string]string{
			"LIBTPU_INIT_ARGS": "--xla_tpu_scoped_vmem_limit_kib=98304", "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
		}},
		{"TPU node", func(s *Setting) { s.TPUNode, s.Simulated = true, false }, map[string]string{
			"TPU_SKIP_MDS_QUERY": "-", "TPU_ACCELERATOR_TYPE": "-", "TPU_TOPOLOGY": "-", "TPU_TOPOLOGY_WRAP": "-", "TPU_TOPOLOGY_ALT": "-",
			"TPU_HOST_BOUNDS": "-", "TPU_CHIPS_PER_HOST_BOUNDS": "-", "TPU_WORKER_ID": "-", "TPU_WORKER_HOSTNAMES": "-",
			"JAX_PLATFORMS": "tpu,cpu", "JAX_PROCESS_ID": "3", "MEGASCALE_SLICE_ID": "1", "PJRT_DEVICE": "TPU",
		}},
		{"v5p from 4x4x4", func(s *Setting) { s.Run.Accelerator = "v5p-128" }, map[string]string{
			"TPU_TOPOLOGY": "4x4x4", "TPU_HOST_BOUNDS": "2,2,4", "TPU_TOPOLOGY_WRAP": "true,true,true", "ENABLE_ICI_RESILIENCY": "true",
		}},
		{"v5p below", func(s *Setting) { s.Run.Accelerator = "v5p-64" }, map[string]string{"ENABLE_ICI_RESILIENCY": "-"}},
		{"v4", func(s *Setting) { s.Run.Accelerator = "v4-16" }, map[string]string{"LIBTPU_INIT_ARGS": "-"}},
		{"one slice", func(s *Setting) { s.Run.NumSlices = 1 }, map[string]string{
			"MEGASCALE_COORDINATOR_ADDRESS": "-", "MEGASCALE_PORT": "-", "MEGASCALE_SLICE_ID": "-", "FRAY_NUM_SLICES": "1",
		}},
		{"megascale without a port", func(s *Setting) { s.Run.Megascale = "127.1.0.1" }, map[string]string{"MEGASCALE_PORT": "8081"}},
		{"no TPU", func(s *Setting) { s.Run.Accelerator = "" }, map[string]string{
			"JAX_PLATFORMS": "-", "TPU_NAME": "-", "MEGASCALE_PORT": "-", "FRAY_TASK_INDEX": "3",
			"JAX_COORDINATOR_ADDRESS": "127.1.0.1:4000", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3", // a gang
		}},
		{"one task without a TPU", func(s *Setting) {
			s.Run.Accelerator, s.Run.Peers, s.Task = "", s.Run.Peers[:1], 0
		}, map[string]string{"JAX_PLATFORMS": "-", "JAX_COORDINATOR_ADDRESS": "-", "JAX_NUM_PROCESSES": "-", "JAX_PROCESS_ID": "-"}},
		{"GPUs", func(s *Setting) { s.Run.Accelerator, s.GPUs = "", []int{1, 3} }, map[string]string{
			"CUDA_VISIBLE_DEVICES": "1,3", "NVIDIA_VISIBLE_DEVICES": "1,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "JAX_PLATFORMS": "-",
			"JAX_COORDINATOR_ADDRESS": "127.1.0.1:4000", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3", "TPU_NAME": "-",
		}},
		{"GPUs of those that the agent sees", func(s *Setting) {
			s.GPUs, s.Base = []int{0, 2}, []string{"CUDA_VISIBLE_DEVICES=4, 5,GPU-8e1"}
		}, map[string]string{"CUDA_VISIBLE_DEVICES": "4,GPU-8e1", "NVIDIA_VISIBLE_DEVICES": "4,GPU-8e1"}},
		{"a GPU beyond those that the agent sees", func(s *Setting) {
			s.GPUs, s.Base = []int{1}, []string{"CUDA_VISIBLE_DEVICES=4"}
		}, map[string]string{"CUDA_VISIBLE_DEVICES": ""}},
		{"GPUs that an agent on a shared node was given by number", func(s *Setting) {
			s.Simulated, s.GPUs, s.Base = false, []int{3}, []string{"CUDA_VISIBLE_DEVICES=3"}
		}, map[string]string{"CUDA_VISIBLE_DEVICES": "3", "NVIDIA_VISIBLE_DEVICES": "3"}},
		{"GPUs that an agent on a shared node was given by name", func(s *Setting) {
			s.Simulated, s.GPUs, s.Base = false, []int{0}, []string{"CUDA_VISIBLE_DEVICES=GPU-8e1,GPU-9f2"}
		}, map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-8e1", "NVIDIA_VISIBLE_DEVICES": "GPU-8e1"}},
		{"no GPU on a machine of many", func(s *Setting) { s.Base = []string{"CUDA_VISIBLE_DEVICES=4"} }, map[string]string{
			"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void", "CUDA_DEVICE_ORDER": "-",
		}},
		{"packed", func(s *Setting) { s.Simulated, s.Run.Spec.Resources.Packed = false, true }, map[string]string{
			"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void",
		}},
		{"a machine of its own", func(s *Setting) { s.Simulated = false }, map[string]string{
			"CUDA_VISIBLE_DEVICES": "-", "NVIDIA_VISIBLE_DEVICES": "-",
		}},
		{"GPUs that the job chooses", func(s *Setting) {
			s.Run.Spec.Environment.Env = map[string]schema.Text{"CUDA_VISIBLE_DEVICES": schema.Plain("7")}
		}, map[string]string{"CUDA_VISIBLE_DEVICES": "7"}},
		{"no cluster", func(s *Setting) { s.Cluster = "" }, map[string]string{"FRAY_CLUSTER_ADDRESS": "-", "FRAY_CLUSTER_SPEC": "-"}},
		{"no token", func(s *Setting) { s.Token = "" }, map[string]string{"FRAY_CLUSTER_TOKEN": "-"}},
		{"no zone", func(s *Setting) { s.Zone = "" }, map[string]string{"FRAY_ZONE": "-", "FRAY_REGION": "-"}},
		{"no region", func(s *Setting) { s.Zone = "local" }, map[string]string{"FRAY_ZONE": "local", "FRAY_REGION": "-"}},
		{"no grace", func(s *Setting) { s.Run.Spec.StopGrace = 0 }, map[string]string{"FRAY_STOP_GRACE": "-"}},
		{"no callable", func(s *Setting) { s.Callable = "" }, map[string]string{"FRAY_CALLABLE": "-"}},
		{"for_each", func(s *Setting) { s.Run.Job.Key = schema.StringKey("eu") }, map[string]string{"FRAY_INSTANCE_KEY": "eu"}},
		{"single", func(s *Setting) { s.Run.Job.Key = schema.Key{} }, map[string]string{"FRAY_INSTANCE_KEY": "-"}},
		{"user's word counts", func(s *Setting) {
			s.Run.Spec.Environment.Env = map[string]schema.Text{
				"JAX_PLATFORMS": schema.Plain("mine"), "FRAY_TASK_INDEX": schema.Plain("99"), "PYTHONUNBUFFERED": schema.Plain(""),
			}
		}, map[string]string{"JAX_PLATFORMS": "mine", "FRAY_TASK_INDEX": "3", "PYTHONUNBUFFERED": ""}},
		{"no uv", func(*Setting) {}, map[string]string{
			"PATH": "/usr/bin", "PYTHONPATH": "-", "VIRTUAL_ENV": "-", "FRAY_VAR_token": "-", "FRAY_STATE": "-",
		}},
		{"uv and the user's paths", func(s *Setting) {
			s.Venv = "/venv"
			s.Run.Spec.Environment.Env = map[string]schema.Text{"PATH": schema.Plain("/p"), "PYTHONPATH": schema.Plain("/q")}
		}, map[string]string{"PATH": "/venv/bin:/p", "PYTHONPATH": "/w:/w/src:/q"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := gang()
			test.change(&s)
			env := asMap(t, s)
			for name, want := range test.want {
				got, ok := env[name]
				if !ok {
					got = "-"
				}
				if got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestTaskEnvNeedsTheKey(t *testing.T) {
	s := gang()
	s.Sealer = nil
	sealed, err := schema.Secret("s3cret").Seal(rot{})
	if err != nil {
		t.Fatal(err)
	}
	s.Run.Spec.Environment.Env = map[string]schema.Text{"TOKEN": sealed}
	if _, err := Of(s); err == nil || !strings.Contains(err.Error(), "variable TOKEN") {
		t.Errorf("error is %v, want one that names TOKEN", err)
	}
}

// docs/md lists what tasks find, no more and no less.
func TestEnvironmentIsDocumented(t *testing.T) {
	s := gang()
	s.Venv = "/venv"
	s.Base = []string{"PATH=/usr/bin"}
	s.Run.Spec.Environment.Env = nil
	s.Run.Accelerator = "v5p-128" // all variables of TPUs
	s.GPUs = []int{0}
	s.Run.ScheduledRun = state.ScheduledRun{Run: 7, DueAt: time.Unix(1000, 0)}
	s.Identity, s.Termination, s.Profiles = "/host/tasks/t/actor.pem", "/host/tasks/t/termination.json", "/host/tasks/t/profiles"
	var code []string
	given := slices.Collect(maps.Keys(asMap(t, s)))
	for _, name := range append(given, schema.ActorClassVariable, schema.ActorArgsVariable, schema.ActorNamesVariable, schema.ActorOptionsVariable,
		schema.StopReasonVariable, schema.StopDeadlineVariable, schema.StopRemainingVariable) {
		if strings.HasPrefix(name, "FRAY_PORT_") {
			name = "FRAY_PORT_NAME"
		}
		if !slices.Contains(code, name) {
			code = append(code, name)
		}
	}
	page, err := os.ReadFile("../../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	var docs []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		docs = append(docs, match[1])
	}
	slices.Sort(code)
	slices.Sort(docs)
	if diff := cmp.Diff(code, docs); diff != "" {
		t.Errorf("variables (-code +docs/md):\n%s", diff)
	}
}

// rot is a Sealer whose sealed form does not contain the secret.
type rot struct{}

func (rot) Seal(s string) (string, error) { return shift(s, 1), nil }
func (rot) Open(s string) (string, error) { return shift(s, -1), nil }

func shift(s string, by rune) string {
	return strings.Map(func(r rune) rune { return r + by }, s)
}
