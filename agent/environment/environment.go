package environment

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/profile/profileserver"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Setting is what a task's environment follows from.
type Setting struct {
	Base      []string // the agent's own environment
	Run       *state.Run
	Task      int // index among run.Peers
	Nonce     string
	Ports     map[string]int
	WorkDir   string
	Venv      string // uv environment, "" without
	Workspace string // "": "default"
	Simulated bool
	GPUs      []int // of its machine, that are the task's own
	// TPUNode is set on the machines of TPU nodes, whose metadata server describes the
	// TPU to libtpu.
	TPUNode  bool
	Sealer   schema.Sealer
	Cluster  string // address of the cluster API, "" without
	Zone     string // "": not known
	Callable string // file of the job's callable, "" without
	Token    string // what the task shows to the cluster API, "" without
	Identity string // file of its namespace's identity, "" without
	// Program is the file of the agent's own program, fray. "" in a container, which does not have it.
	Program string
	// termination is the file in which the task may record why it ended.
	Termination string
	// Profiles is the directory in which the task's processes may serve their profiles.
	Profiles string
}

// Of is the whole environment of a task, sorted. Later sources win: the
// agent's environment without anything of fray's, the TPU, GPU and JAX variables,
// the job's env, the FRAY_ variables. A uv environment's programs come first
// on PATH and the project first on PYTHONPATH, whatever set these.
func Of(s Setting) ([]string, error) {
	env := map[string]string{}
	for _, entry := range s.Base {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && !strings.HasPrefix(name, "FRAY_") {
			env[name] = value
		}
	}
	env["PYTHONUNBUFFERED"] = "1" // output is read while it is written
	if err := addTPU(env, s); err != nil {
		return nil, err
	}
	addGPU(env, s)
	addCoordinator(env, s)
	for name, text := range s.Run.Spec.Environment.Env {
		value, err := text.Reveal(s.Sealer)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", name, err)
		}
		env[name] = value
	}
	addVenv(env, s)
	addFray(env, s)
	addCluster(env, s)
	entries := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entries = append(entries, name+"="+env[name])
	}
	return entries, nil
}

func addFray(env map[string]string, s Setting) {
	run, self := s.Run, s.Run.Peers[s.Task]
	env["FRAY_JOB_ID"] = run.JobID
	env["FRAY_JOB_NAME"] = run.Job.Name
	if run.Job.IsLaunched() {
		env["FRAY_JOB_NAME"] = run.Job.LaunchedName()
	}
	env["FRAY_NAMESPACE"] = run.Spec.Namespace
	env["FRAY_WORKSPACE"] = cmp.Or(s.Workspace, schema.DefaultWorkspace)
	env["FRAY_ATTEMPT"] = strconv.Itoa(run.Attempt)
	if run.Run > 0 {
		env["FRAY_SCHEDULED_RUN"] = strconv.Itoa(run.Run)
		env["FRAY_SCHEDULED_TIME"] = run.DueAt.UTC().Format(time.RFC3339)
	}
	env["FRAY_TASK_INDEX"] = strconv.Itoa(s.Task)
	env["FRAY_NUM_TASKS"] = strconv.Itoa(len(run.Peers))
	env["FRAY_SLICE_INDEX"] = strconv.Itoa(run.SliceIndex)
	env["FRAY_NUM_SLICES"] = strconv.Itoa(run.NumSlices)
	env["FRAY_HOST_ADDRESS"] = self.Address
	env[process.NonceEnv] = s.Nonce
	if s.Callable != "" {
		env["FRAY_CALLABLE"] = s.Callable
	}
	if s.Termination != "" {
		env[schema.TerminationVariable] = s.Termination
	}
	if s.Profiles != "" {
		env[profileserver.Variable] = s.Profiles
	}
	if run.Spec.StopGrace > 0 {
		env["FRAY_STOP_GRACE"] = strconv.FormatFloat(time.Duration(run.Spec.StopGrace).Seconds(), 'f', -1, 64)
	}
	if s.Identity != "" {
		env["FRAY_ACTOR_IDENTITY"] = s.Identity
	}
	if s.Program != "" {
		env["FRAY_PROGRAM"] = s.Program
	}
	if n, ok := run.Job.Key.Int(); ok {
		env["FRAY_INSTANCE_KEY"] = strconv.Itoa(n)
	}
	if key, ok := run.Job.Key.Str(); ok {
		env["FRAY_INSTANCE_KEY"] = key
	}
	for name, number := range s.Ports {
		env[portVariable(name)] = strconv.Itoa(number)
	}
}

// addCluster adds where the cluster API is and what to show to it, and where
// the task itself is.
func addCluster(env map[string]string, s Setting) {
	if s.Cluster != "" {
		env["FRAY_CLUSTER_ADDRESS"], env["FRAY_CLUSTER_SPEC"] = s.Cluster, "fray://"+s.Cluster
	}
	if s.Token != "" {
		env["FRAY_CLUSTER_TOKEN"] = s.Token
	}
	if s.Zone != "" {
		env["FRAY_ZONE"] = s.Zone
	}
	if region := accelerators.RegionOf(s.Zone); region != "" {
		env["FRAY_REGION"] = region
	}
}

// portVariable is where a task finds the number of a named port.
func portVariable(name string) string {
	return "FRAY_PORT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// defaultMegascalePort is libtpu's own.
const defaultMegascalePort = "8081"

// addTPU sets what libtpu and JAX read before they start.
func addTPU(env map[string]string, s Setting) error {
	run := s.Run
	if run.Accelerator == "" {
		return nil
	}
	shape, err := accelerators.Parse(run.Accelerator)
	if err != nil {
		return err
	}
	self := run.Peers[s.Task]
	var hosts []string
	for _, peer := range run.Peers {
		if peer.Slice == self.Slice {
			hosts = append(hosts, peer.Address)
		}
	}
	if !s.TPUNode {
		maps.Copy(env, shape.Environment())
		env["TPU_WORKER_ID"] = strconv.Itoa(self.Host)
		env["TPU_WORKER_HOSTNAMES"] = strings.Join(hosts, ",")
	}
	env["TPU_NAME"] = self.Slice
	env["PJRT_DEVICE"] = "TPU"
	env["JAX_PLATFORMS"] = "tpu,cpu"
	if s.Simulated {
		env["JAX_PLATFORMS"] = "cpu"
	}
	if args := shape.LibtpuInitArgs(); args != "" {
		env["LIBTPU_INIT_ARGS"] = args
	}
	if run.NumSlices > 1 {
		addMegascale(env, run)
	}
	return nil
}

func addMegascale(env map[string]string, run *state.Run) {
	port := defaultMegascalePort
	if _, p, err := net.SplitHostPort(run.Megascale); err == nil {
		port = p
	}
	env["MEGASCALE_COORDINATOR_ADDRESS"] = run.Megascale
	env["MEGASCALE_NUM_SLICES"] = strconv.Itoa(run.NumSlices)
	env["MEGASCALE_SLICE_ID"] = strconv.Itoa(run.SliceIndex)
	env["MEGASCALE_PORT"] = port
}

func addVenv(env map[string]string, s Setting) {
	if s.Venv == "" {
		return
	}
	env["VIRTUAL_ENV"] = s.Venv
	env["UV_PROJECT_ENVIRONMENT"] = s.Venv
	env["PATH"] = prepend(env["PATH"], filepath.Join(s.Venv, "bin"))
	// The environment holds the dependencies only and is shared by hosts and
	// attempts; the project itself is imported from its own directory.
	env["PYTHONPATH"] = prepend(env["PYTHONPATH"], s.WorkDir, filepath.Join(s.WorkDir, "src"))
}

func prepend(list string, dirs ...string) string {
	if list != "" {
		dirs = append(dirs, list)
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}
