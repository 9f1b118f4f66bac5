package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/container"
	"github.com/fray-ml/fray/agent/environment"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/shim"
	"github.com/fray-ml/fray/schema"
)

// withoutRuntime is what becomes of a task whose host has no container runtime that
// works: one that is down is the host's fault, a missing one that of the boot image.
func withoutRuntime(err error) error {
	reason := "environment.image cannot be used: " + err.Error()
	if _, absent := errors.AsType[*container.AbsentError](err); absent {
		return &outcome.Early{State: schema.TaskUnschedulable, Reason: reason}
	}
	if _, down := errors.AsType[*container.DownError](err); down {
		return &outcome.Early{State: schema.TaskWorkerFailed, Reason: reason}
	}
	return err
}

// prepareContainer makes the image ready, removes what earlier tasks have left, and
// returns what the shim must run: the client of a container runtime.
func (t preparation) prepareContainer(ctx context.Context) (*shim.Spec, error) {
	image := t.run.Spec.Environment.Image
	find := container.Finder{Waiting: func(program string) { t.building("waiting for " + program) }}
	runtime, err := find.Find(ctx)
	if err != nil {
		return nil, withoutRuntime(err)
	}
	t.in.Container = &hostdir.Container{Runtime: runtime, Name: "fray-" + t.in.Key + "-" + t.in.Nonce}
	if err := container.RemoveOld(ctx, runtime, t.host.Dir.HostMark()); err != nil {
		return nil, err
	}
	t.building("pulling " + image)
	pull := container.Puller{Runtime: runtime, Dir: t.host.Dir, Token: t.host.RegistryToken, Log: t.host.Log}
	if err := pull.Pull(ctx, image); err != nil {
		return nil, err
	}
	t.building("")
	inside, err := t.containerTask()
	if err != nil {
		return nil, err
	}
	argv, env, err := inside.Client()
	if err != nil {
		return nil, err
	}
	return &shim.Spec{
		HostDir: t.host.Dir.Path, TaskDir: t.dir, Nonce: t.in.Nonce, Grace: t.in.Grace,
		Path: runtime, Argv: argv, Env: env, WorkDir: t.host.Dir.Path, Hook: t.hook(env, t.host.Dir.Path),
	}, nil
}

// containerTask is what runs in the container.
func (t preparation) containerTask() (container.Task, error) {
	setting := t.setting()
	gpus := environment.VisibleGPUs(setting.GPUs, os.Getenv(environment.VisibleDevices), false)
	if len(gpus) < len(setting.GPUs) {
		reason := fmt.Sprintf("the task needs %d GPUs, and the agent's %s is %q", len(setting.GPUs), environment.VisibleDevices, os.Getenv(environment.VisibleDevices))
		return container.Task{}, &outcome.Early{State: schema.TaskFailed, Reason: reason}
	}
	setting.GPUs = make([]int, len(gpus))
	for n := range gpus { // a container has but its own, which count from 0
		setting.GPUs[n] = n
	}
	env, err := environment.Of(setting)
	if err != nil {
		return container.Task{}, err
	}
	argv, err := command.Reveal(t.run.Spec.Command, t.host.Sealer)
	if err != nil {
		return container.Task{}, &outcome.Early{State: schema.TaskFailed, Reason: err.Error()}
	}
	c := container.Task{
		Container: *t.in.Container, Image: t.run.Spec.Environment.Image, Command: argv, Env: env,
		Key: t.in.Key, Nonce: t.in.Nonce, HostMark: t.host.Dir.HostMark(), Dir: t.dir, CacheDir: t.host.CacheDir, TPU: t.in.TPU, GPUs: gpus,
	}
	if t.run.Spec.Environment.Bundle != "" {
		c.WorkDir = t.in.WorkDir
	}
	if t.run.Spec.Environment.Callable != "" {
		c.Callables = t.host.Dir.File(hostdir.CallablesDir)
	}
	if file := t.identity(); file != "" { // the directory, since the file is replaced when authorities come and go
		c.Identity = filepath.Dir(file)
	}
	return c, nil
}
