package task

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/schema"
)

// programMissing is how a task ends whose program its host does not have: the next
// attempt would not find it either.
func programMissing(reason string) *outcome.Early {
	end := &schema.Termination{Cause: schema.TerminationProgramMissing, Message: reason}
	return &outcome.Early{State: schema.TaskFailed, Reason: reason, Termination: end}
}

// askPython has a Python exit with pythonLacksFray if a program in the directory
// sys.argv[1] would find no package fray, and with pythonHasOther if it would find one of
// another distribution; it prints the names of that, and where its package is. A directory
// without code is no package: files of a configuration may be in one called fray.
const askPython = `
import importlib.util, os, sys
os.chdir(sys.argv[1])
found = importlib.util.find_spec("fray")
if found is None:
    sys.exit(3)
places = list(found.submodule_search_locations or [os.path.dirname(found.origin)])
if any(os.path.exists(os.path.join(place, "_callable.py")) for place in places):
    sys.exit(0)
if found.origin is None:
    sys.exit(3)
from importlib.metadata import packages_distributions
print(" ".join(sorted(set(packages_distributions().get("fray", ())))), places[0], sep="\t")
sys.exit(4)
`

const (
	pythonLacksFray = 3
	pythonHasOther  = 4
)

// pythonPatience bounds how long a Python may take to answer that.
const pythonPatience = time.Minute

// packageMissing returns that the Python of a task that failed lacks the package
// fray, or has another one of that name, nil if it has it, or is not known to lack it. Python itself answers, and it is
// asked only where the program is one of that package or stumbled over an import. The
// Python of a container is gone with it.
func (t *Task) packageMissing(exit hostdir.ExitRecord, written string) *schema.Termination {
	select {
	case <-t.runSeen:
	default:
		return nil // an adopted task that ended before its assignment was read
	}
	if t.in.Container != nil || exit.ExitCode == nil || *exit.ExitCode != 1 {
		return nil
	}
	argv, err := command.Reveal(t.run.Spec.Command, t.host.Sealer)
	if err != nil || !strings.HasPrefix(filepath.Base(argv[0]), "python") {
		return nil
	}
	if !runsFray(argv) && !outcome.LacksModule(written, "fray") {
		return nil
	}
	env, err := t.environment()
	if err != nil {
		return nil
	}
	python, err := command.Find(argv[0], t.in.WorkDir, command.Lookup(env, "PATH"))
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.host.Work, pythonPatience)
	defer cancel()
	output, err := command.Run(ctx, []string{python, "-c", askPython, t.in.WorkDir}, env)
	end, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return nil
	}
	var message string
	switch end.ExitCode() {
	case pythonLacksFray:
		message = python + " does not have the package fray; install it there (pip install " + wanted(env) + "), or add " + strings.Trim(wanted(env), "'") + " to the project's uv.lock"
	case pythonHasOther:
		message = otherPackage(python, output)
	default:
		return nil
	}
	return &schema.Termination{Cause: schema.TerminationPackageMissing, Message: t.hidden().String(message)}
}

// otherPackage is the message for a Python that has another distribution's package fray,
// as askPython has described it.
func otherPackage(python, described string) string {
	last := strings.Join(command.LastLines(described, 1), "") // after warnings of Python
	names, place, _ := strings.Cut(last, "\t")
	if names == "" {
		return python + " imports another package as fray, from " + place + ", than that of fray-ml; rename or remove it there, and install fray-ml"
	}
	return python + " imports the package fray of another distribution, " + names + ", from " + place +
		"; remove that from the project's dependencies, or uninstall it there (pip uninstall " + names + "), and install fray-ml"
}

// wanted is what to install for a program: roles of a reinforcement learning run need an extra of the package.
func wanted(env []string) string {
	if command.Lookup(env, "FRAY_RL_CONFIG") != "" {
		return "'fray-ml[rl]'"
	}
	return "fray-ml"
}

// runsFray reports whether a command runs a module of the package fray.
func runsFray(argv []string) bool {
	at := slices.Index(argv, "-m")
	return at > 0 && at+1 < len(argv) && strings.HasPrefix(argv[at+1], "fray.")
}
