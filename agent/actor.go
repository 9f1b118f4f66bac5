package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/schema"
)

// exitNotConstructed is how a program that hosts an actor ends when there is no
// actor to host: its class was not found, or its constructor failed.
const exitNotConstructed = 77

// announces reports whether a line is the one with which the Python host of an
// actor says where it serves (fray._host_serve): it explains no end.
func announces(line string) bool {
	names, address, ok := strings.Cut(line, " at ")
	_, _, err := net.SplitHostPort(address)
	return ok && err == nil && strings.HasPrefix(names, "fray: ")
}

// actorEnded says why an actor is not there, with what its program said last:
// those who wait for the actor see neither its log nor that of its constructor.
func actorEnded(exit exitRecord, output string) string {
	const unmade = "the actor could not be constructed"
	last := strings.Join(lastLines(strings.ToValidUTF8(output, "�"), 1), "")
	if _, said, ok := strings.Cut(last, unmade+": "); ok { // as fray.host has it
		last = said
	}
	if announces(last) {
		last = ""
	}
	how := exit.inWords()
	unconstructed := *exit.ExitCode == exitNotConstructed
	switch {
	case unconstructed && last == "":
		return fmt.Sprintf("%s (%s)", unmade, how)
	case unconstructed:
		return unmade + ": " + last
	case last == "":
		return how
	}
	return how + ": " + last
}

// prepareIdentity makes the file by which the task's actors and those that they
// call know each other. A host that cannot open the stack's key has none to give:
// its tasks' actors are for its own machine.
func (t *task) prepareIdentity() error {
	// What an agent left that died before it started its task.
	if err := removeAll(filepath.Join(t.agent.dir.file(tasksDir), "*", identityFile)); err != nil {
		return fmt.Errorf("prepare the actors' identity: %w", err)
	}
	key, ok := t.agent.Sealer.(schema.Deriver)
	stack := t.agent.host.stack.Load()
	if !ok || stack == nil {
		return nil
	}
	text, err := identity.New(key, *stack).File(t.run.Spec.Namespace)
	if err != nil {
		t.agent.Log.Info("the task's actors have no identity", "error", err)
		return nil
	}
	err = os.MkdirAll(string(t.dir), 0o700)
	if err == nil {
		err = os.WriteFile(t.dir.file(identityFile), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("prepare the actors' identity: %w", err)
	}
	return nil
}

// identity is the file that prepareIdentity made, "" without.
func (t *task) identity() string {
	file := t.dir.file(identityFile)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

func (t *task) removeIdentity() {
	if err := os.Remove(t.dir.file(identityFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.agent.Log.Error("the actors' identity not removed", "error", err)
	}
}
