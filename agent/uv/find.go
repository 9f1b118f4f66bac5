package uv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/tree"
)

// find returns the program uv. A machine that is this agent's alone gets one if
// it has none: boot images come without.
func (b Builder) find(ctx context.Context) (string, error) {
	if program, err := exec.LookPath("uv"); err == nil {
		return program, nil
	}
	if b.Simulated {
		return "", errors.New("environment.uv needs uv on this host, and it is not on PATH; install it, for example with pip install uv")
	}
	dir := filepath.Join(b.CacheDir, "uv-program")
	program := filepath.Join(dir, "bin", "uv")
	if command.Executable(program) == nil && tree.Intact(dir) {
		return program, nil
	}
	b.Building("installing uv")
	if err := install(ctx, dir); err != nil {
		return "", fmt.Errorf("environment.uv needs uv on this host, and it cannot be installed: %w; use a boot image that has it", err)
	}
	b.Building("")
	return program, nil
}

// Program returns uv for a program of the agent's own: the one on the path, or the one of the cache.
// It installs none.
func Program(cacheDir string) (string, error) {
	if program, err := exec.LookPath("uv"); err == nil {
		return program, nil
	}
	dir := filepath.Join(cacheDir, "uv-program")
	program := filepath.Join(dir, "bin", "uv")
	if command.Executable(program) == nil && tree.Intact(dir) {
		return program, nil
	}
	return "", errors.New("there is no uv on the host")
}

// install makes a directory with bin/uv in it; one that was cut off is begun anew.
func install(ctx context.Context, dir string) error {
	temp := dir + ".new"
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(filepath.Dir(dir), 0o700)); err != nil {
		return err
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("there is no python3")
	}
	output, err := command.Run(ctx, []string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", temp, "uv"},
		command.WithoutFray(os.Environ()))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("pip install uv: %s", command.LastLine(output, err))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return tree.Place(temp, dir)
}
