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
// sys.argv[1] could not import the package fray.
const askPython = "import importlib.util, os, sys; os.chdir(sys.argv[1]); " +
	"sys.exit(3 if importlib.util.find_spec('fray') is None else 0)"

const pythonLacksFray = 3

// pythonPatience bounds how long a Python may take to answer that.
const pythonPatience = time.Minute

// packageMissing returns that the Python of a task that failed lacks the package
// fray, nil if it has it, or is not known to lack it. Python itself answers, and it is
// asked only where the program is one of that package or stumbled over an import. The
// Python of a container is gone with it.
func (t *Task) packageMissing(exit hostdir.ExitRecord, output string) *schema.Termination {
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
	if !runsFray(argv) && !outcome.LacksModule(output, "fray") {
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
	_, err = command.Run(ctx, []string{python, "-c", askPython, t.in.WorkDir}, env)
	if end, ok := errors.AsType[*exec.ExitError](err); !ok || end.ExitCode() != pythonLacksFray {
		return nil
	}
	message := python + " does not have the package fray; install it there (pip install fray), or add it to the project's uv.lock"
	return &schema.Termination{Cause: schema.TerminationPackageMissing, Message: t.hidden().String(message)}
}

// runsFray reports whether a command runs a module of the package fray.
func runsFray(argv []string) bool {
	at := slices.Index(argv, "-m")
	return at > 0 && at+1 < len(argv) && strings.HasPrefix(argv[at+1], "fray.")
}
