package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// prepare makes everything ready that the command needs and returns what the
// shim must run. Errors that say what becomes of the task are endErrors.
func (t *task) prepare(ctx context.Context) (*shimSpec, error) {
	a, run := t.agent, t.run
	if err := t.shipper().clear(ctx); err != nil {
		return nil, err
	}
	if err := t.prepareFiles(ctx); err != nil {
		return nil, err
	}
	ports, err := pickPorts(run.Spec.Resources.Ports, a.Address, a.guest())
	if _, inUse := errors.AsType[*portInUseError](err); inUse {
		return nil, &endError{state: schema.TaskUnschedulable, reason: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	t.in.Ports = ports
	if err := t.prepareIdentity(ctx); err != nil {
		return nil, err
	}
	spec, err := t.shimSpec(ctx)
	if err == nil {
		spec.Secrets = t.secrets()
		t.set(func(r *state.TaskReport) { r.State, r.Ports = schema.TaskAssigned, ports })
	}
	return spec, err
}

// environment is the task's whole environment, secrets in clear.
func (t *task) environment() ([]string, error) {
	s := t.setting()
	s.base, s.venv, s.simulated = os.Environ(), t.in.Venv, t.agent.Simulated
	return taskEnv(s)
}

// setting is what the environment follows from in a container and outside.
func (t *task) setting() setting {
	s := setting{
		run: t.run, task: t.in.Task, nonce: t.in.Nonce, ports: t.in.Ports, workDir: t.in.WorkDir,
		sealer: t.agent.Sealer, workspace: t.agent.Workspace, zone: t.agent.Zone, cluster: t.agent.cluster,
		token: t.token(), identity: t.identity(),
		termination: t.dir.file(terminationFile),
	}
	if sum := t.run.Spec.Environment.Callable; sum != "" {
		s.callable = filepath.Join(t.agent.dir.file(callablesDir), sum)
	}
	return s
}

// inContainer reports whether the task runs in its job's image. Hosts that are
// no machines of their own share this one's programs instead.
func (t *task) inContainer() bool {
	return t.run.Spec.Environment.Image != "" && !t.agent.Simulated
}

func (t *task) shimSpec(ctx context.Context) (*shimSpec, error) {
	if t.inContainer() {
		return t.prepareContainer(ctx)
	}
	env, err := t.environment()
	if err != nil {
		return nil, err
	}
	argv, err := revealAll(t.run.Spec.Command, t.agent.Sealer)
	if err != nil {
		return nil, &endError{state: schema.TaskFailed, reason: err.Error()}
	}
	program, err := findProgram(argv[0], t.in.WorkDir, lookupEnv(env, "PATH"))
	if err != nil {
		reason := err.Error()
		if t.run.Spec.Command[0].IsSensitive() {
			reason = "the command, whose name is sensitive, cannot be run"
		}
		return nil, &endError{state: schema.TaskFailed, reason: reason}
	}
	return &shimSpec{
		HostDir: t.agent.dir.path, TaskDir: t.dir, Nonce: t.in.Nonce, Grace: t.in.Grace,
		Path: program, Argv: argv, Env: env, WorkDir: t.in.WorkDir,
	}, nil
}
