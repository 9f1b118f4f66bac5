package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
)

// Task is a task that runs in a container.
type Task struct {
	Container hostdir.Container
	Image     string
	Command   []string // in clear
	Env       []string // in clear
	Key       string   // of the task's start
	Nonce     string   // in the environment of all its processes
	HostMark  string
	Dir       hostdir.TaskDir
	CacheDir  string
	WorkDir   string // mounted, and the command's directory; "": the image's own
	Callables string // directory that is mounted to be read; "": none
	Identity  string // directory that is mounted to be read; "": none
	TPU       bool
	GPUs      []string // of the host, by index or UUID
}

// Client is the command line of the runtime's client, which the shim runs, and its
// environment. The task's variables reach it by a file, and those of several lines
// by the client's own environment: everybody can read a list of arguments.
func (t Task) Client() (argv, env []string, err error) {
	inside := t.Env
	if command.Lookup(inside, "XDG_CACHE_HOME") == "" { // what programs keep there is warm for the next task
		inside = append(slices.Clip(inside), "XDG_CACHE_HOME="+t.CacheDir)
	}
	env = append(command.WithoutFray(os.Environ()), process.NonceEnv+"="+t.Nonce)
	var lines, names []string
	for _, entry := range inside {
		name, _, _ := strings.Cut(entry, "=")
		if strings.Contains(entry, "\n") {
			names, env = append(names, "--env", name), append(env, entry)
			continue
		}
		lines = append(lines, entry+"\n")
	}
	file := t.Dir.File(hostdir.EnvFile)
	for _, dir := range []string{string(t.Dir), t.CacheDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("prepare container: %w", err)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		return nil, nil, fmt.Errorf("prepare container: %w", err)
	}
	argv = slices.Concat([]string{t.Container.Runtime, "run", "--env-file", file}, names, t.Flags(), []string{t.Image}, t.Command)
	return argv, env, nil
}

// Flags are how the container is made: it shares the host's network and user, so
// that a task finds there what it would find outside. A TPU's devices need a
// privileged one, and locked memory (cloud.google.com/tpu/docs/run-in-container).
func (t Task) Flags() []string {
	flags := []string{
		"--name", t.Container.Name,
		"--label", labelHost + "=" + t.HostMark, "--label", labelTask + "=" + t.Key,
		"--pull", "never", "--log-driver", "none",
		"--stop-timeout", "0", // the grace is over when it is removed
		"--network", "host", "--shm-size", "100g",
		"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		"--volume", t.CacheDir + ":" + t.CacheDir,
	}
	if t.TPU {
		flags = append(flags, "--privileged", "--ulimit", "memlock=68719476736")
	}
	flags = append(flags, t.gpuFlags()...)
	if hasInit(t.Container.Runtime) {
		flags = append(flags, "--init") // else what has no handler ignores SIGTERM
	}
	for _, dir := range []string{t.Callables, t.Identity} {
		if dir != "" {
			flags = append(flags, "--volume", dir+":"+dir+":ro")
		}
	}
	for _, name := range []string{hostdir.TerminationDir, hostdir.ProfilesDir} {
		dir := t.Dir.File(name)
		flags = append(flags, "--volume", dir+":"+dir)
	}
	if t.WorkDir != "" {
		flags = append(flags, "--volume", t.WorkDir+":"+t.WorkDir, "--workdir", t.WorkDir)
	}
	return flags
}

// gpuFlags give the container its GPUs: docker by NVIDIA's runtime hook, podman by the
// Container Device Interface, whose names the NVIDIA Container Toolkit writes.
func (t Task) gpuFlags() []string {
	if len(t.GPUs) == 0 {
		return nil
	}
	if filepath.Base(t.Container.Runtime) != "podman" {
		return []string{"--gpus", `"device=` + strings.Join(t.GPUs, ",") + `"`}
	}
	var flags []string
	for _, gpu := range t.GPUs {
		flags = append(flags, "--device", "nvidia.com/gpu="+gpu)
	}
	return flags
}

// hasInit reports whether the runtime can put an init before a command. Docker
// brings its own; podman's is a package that may be missing.
func hasInit(runtime string) bool {
	if filepath.Base(runtime) != "podman" {
		return true
	}
	for _, file := range []string{"/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit", "/usr/local/libexec/podman/catatonit", "/usr/bin/catatonit"} {
		if command.Executable(file) == nil {
			return true
		}
	}
	return false
}
