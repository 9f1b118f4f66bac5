package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/agent/artifact"
	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/container"
	"github.com/fray-ml/fray/agent/environment"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/ports"
	"github.com/fray-ml/fray/agent/shim"
	"github.com/fray-ml/fray/agent/uv"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// preparation is the part of a task's life before its command runs. What it prepared
// is in the task's intent.
type preparation struct{ *Task }

// prepare makes everything ready that the command needs and returns what the
// shim must run. Errors that determine what becomes of the task are of type outcome.Early.
func (t preparation) prepare(ctx context.Context) (*shim.Spec, error) {
	h, run := t.host, t.run
	if err := t.shipper().Clear(ctx); err != nil {
		return nil, err
	}
	if err := t.prepareFiles(ctx); err != nil {
		return nil, err
	}
	numbers, err := ports.Pick(run.Spec.Resources.Ports, h.Address, h.Packed)
	if _, inUse := errors.AsType[*ports.InUseError](err); inUse {
		return nil, &outcome.Early{State: schema.TaskUnschedulable, Reason: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	t.in.Ports = numbers
	if err := t.prepareIdentity(ctx); err != nil {
		return nil, err
	}
	spec, err := t.shimSpec(ctx)
	if err == nil {
		spec.Secrets = t.secrets()
		t.set(func(r *state.TaskReport) { r.State, r.Ports = schema.TaskAssigned, numbers })
	}
	return spec, err
}

// building reports that the task is being prepared, and what takes time, "" for
// nothing in particular.
func (t preparation) building(reason string) {
	t.set(func(r *state.TaskReport) { r.State, r.Reason = schema.TaskBuilding, reason })
}

// prepareFiles makes the working directory and the uv environment.
func (t preparation) prepareFiles(ctx context.Context) error {
	wanted := t.run.Spec.Environment
	fetch := artifact.Fetcher{Store: t.host.Store, Dir: t.host.Dir, Log: t.host.Log, Building: func() { t.building("") }}
	t.in.WorkDir = t.host.WorkDir
	if wanted.Bundle != "" {
		dir, err := fetch.Bundle(ctx, wanted.Bundle)
		if err != nil {
			return fmt.Errorf("prepare project: %w", err)
		}
		t.in.WorkDir = dir
	}
	if wanted.Callable != "" {
		if err := fetch.Callable(ctx, wanted.Callable); err != nil {
			return err
		}
	}
	if info, err := os.Stat(t.in.WorkDir); err != nil || !info.IsDir() {
		return fmt.Errorf("prepare project: there is no directory %s to run in", t.in.WorkDir)
	}
	if wanted.UV == nil {
		return nil
	}
	if t.inContainer() {
		return &outcome.Early{
			State:  schema.TaskUnschedulable,
			Reason: "environment.uv is for tasks without environment.image; install what the project needs in the image",
		}
	}
	venv, err := uv.Builder{
		Project: t.in.WorkDir, Content: cmp.Or(wanted.Bundle, t.in.WorkDir), UV: *wanted.UV, CacheDir: t.host.CacheDir,
		Nonce: t.in.Nonce, Simulated: t.host.Simulated, Dir: t.host.Dir, Env: t.environment, Building: t.building,
	}.Build(ctx)
	t.in.Venv = venv
	return err
}

// environment is the task's whole environment, secrets in clear.
func (t *Task) environment() ([]string, error) {
	s := t.setting()
	s.Base, s.Venv, s.Simulated, s.Program = os.Environ(), t.in.Venv, t.host.Simulated, t.host.Executable
	return environment.Of(s)
}

// setting is what the environment follows from in a container and outside.
func (t *Task) setting() environment.Setting {
	s := environment.Setting{
		Run: t.run, Task: t.in.Task, Nonce: t.in.Nonce, Ports: t.in.Ports, WorkDir: t.in.WorkDir,
		Sealer: t.host.Sealer, Workspace: t.host.Workspace, Zone: t.host.Zone, TPUNode: t.host.TPUNode, Cluster: t.host.Cluster,
		Token: t.token(), Identity: t.identity(),
		GPUs: gpusOf(t.host.GPUs, t.run.GPU.Count), Termination: t.dir.File(hostdir.TerminationFile), Profiles: t.dir.File(hostdir.ProfilesDir),
	}
	if sum := t.run.Spec.Environment.Callable; sum != "" {
		s.Callable = filepath.Join(t.host.Dir.File(hostdir.CallablesDir), sum)
	}
	return s
}

// gpusOf are as many GPUs of a host's own as a task asks for, by index; of a host that
// has the machine's all from 0.
func gpusOf(host []int, count int) []int {
	if len(host) > 0 {
		return host[:min(count, len(host))]
	}
	own := make([]int, count)
	for n := range own {
		own[n] = n
	}
	return own
}

// inContainer reports whether the task runs in its job's image. Hosts that are
// no machines of their own share this one's programs instead.
func (t preparation) inContainer() bool {
	return t.run.Spec.Environment.Image != "" && !t.host.Simulated
}

func (t preparation) shimSpec(ctx context.Context) (*shim.Spec, error) {
	if t.inContainer() {
		return t.prepareContainer(ctx)
	}
	env, err := t.environment()
	if err != nil {
		return nil, err
	}
	argv, err := command.Reveal(t.run.Spec.Command, t.host.Sealer)
	if err != nil {
		return nil, &outcome.Early{State: schema.TaskFailed, Reason: err.Error()}
	}
	program, err := command.Find(argv[0], t.in.WorkDir, command.Lookup(env, "PATH"))
	if err != nil {
		reason := err.Error()
		if t.run.Spec.Command[0].IsSensitive() {
			reason = "the command, whose name is sensitive, cannot be run"
		}
		return nil, programMissing(reason)
	}
	return &shim.Spec{
		HostDir: t.host.Dir.Path, TaskDir: t.dir, Nonce: t.in.Nonce, Grace: t.in.Grace,
		Path: program, Argv: argv, Env: env, WorkDir: t.in.WorkDir, Hook: t.hook(env, t.in.WorkDir),
	}, nil
}

// hook is what the supervisor runs before it ends a task, nil without a hook. A program that
// is not there is found to be missing when it is to run: a task does not fail for that.
func (t preparation) hook(env []string, dir string) *shim.Hook {
	if t.run.Spec.BeforeStop == nil {
		return nil
	}
	argv := t.run.Spec.BeforeStop.Command
	if c := t.in.Container; c != nil {
		argv, vars := container.HookArgs(*c, argv, t.in.Nonce)
		return &shim.Hook{Path: c.Runtime, Argv: argv, VarsAt: vars, Env: env, Dir: dir, Nonce: t.in.Nonce}
	}
	h := &shim.Hook{Argv: argv, Env: env, Dir: dir, Nonce: t.in.Nonce}
	program, err := command.Find(argv[0], dir, command.Lookup(env, "PATH"))
	if h.Path = program; err != nil {
		h.Missing = hostdir.Clipped(err.Error())
	}
	return h
}
