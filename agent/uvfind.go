package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// findUV returns the program uv. A machine that is this agent's alone gets one if
// it has none: boot images come without.
func (t *task) findUV(ctx context.Context) (string, error) {
	if program, err := exec.LookPath("uv"); err == nil {
		return program, nil
	}
	if t.agent.Simulated {
		return "", errors.New("environment.uv needs uv on this host, and it is not on PATH; install it, for example with pip install uv")
	}
	dir := filepath.Join(t.agent.CacheDir, "uv-program")
	program := filepath.Join(dir, "bin", "uv")
	if executable(program) == nil && treeIntact(dir) {
		return program, nil
	}
	t.set(func(r *state.TaskReport) { r.State, r.Reason = schema.TaskBuilding, "installing uv" })
	if err := installUV(ctx, dir); err != nil {
		return "", fmt.Errorf("environment.uv needs uv on this host, and it cannot be installed: %w; use a boot image that has it", err)
	}
	t.set(func(r *state.TaskReport) { r.Reason = "" })
	return program, nil
}

// installUV makes a directory with bin/uv in it; one that was cut off is begun anew.
func installUV(ctx context.Context, dir string) error {
	temp := dir + ".new"
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(filepath.Dir(dir), 0o700)); err != nil {
		return err
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("there is no python3")
	}
	output, err := runTool(ctx, []string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", temp, "uv"},
		withoutFray(os.Environ()))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("pip install uv: %s", lastLine(output, err))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return realTreeOps().place(temp, dir)
}
