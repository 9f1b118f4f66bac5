package task

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/identities"
	"github.com/fray-ml/fray/state"
)

// prepareIdentity makes the file by which the task's actors and those that they
// call know each other. Without a certificate, of a leader of a former version,
// there is none, and only programs of this machine reach its actors.
func (t preparation) prepareIdentity(ctx context.Context) error {
	// What an agent left that died before it started its task.
	if err := hostdir.RemoveAll(filepath.Join(t.host.Dir.File(hostdir.TasksDir), "*", hostdir.IdentityDir)); err != nil {
		return fmt.Errorf("prepare the actors' identity: %w", err)
	}
	certificate := certificateOf(t.run, t.host.Host)
	if certificate == nil {
		return nil
	}
	err := t.host.Identities.Keep(ctx, t.dir.File(hostdir.IdentityFile), &identities.Own{Key: t.host.Keys.Identity, Certificate: certificate})
	if err != nil {
		return fmt.Errorf("prepare the actors' identity: %w", err)
	}
	return nil
}

// certificateOf is what a host has been given for an attempt, nil without.
func certificateOf(run *state.Run, host int) []byte {
	for _, c := range run.Certificates {
		if c.Host == host {
			return c.DER
		}
	}
	return nil
}

// Recertify takes a certificate that was issued anew while the task runs, and has the
// file of a task that was taken over kept.
func (t *Task) Recertify(run *state.Run) {
	certificate := certificateOf(run, t.host.Host)
	path := t.identity()
	if certificate == nil || path == "" {
		return
	}
	i := t.host.Identities
	if bytes.Equal(i.Certificate(path), certificate) {
		return
	}
	go func() { // it may wait for the store
		if err := i.Keep(t.host.Work, path, &identities.Own{Key: t.host.Keys.Identity, Certificate: certificate}); err != nil {
			t.host.Log.Warn("the actors' identity is not renewed", "error", err)
		}
		if t.identityGone.Load() {
			t.removeIdentity()
		}
	}()
}

// identity is the file that prepareIdentity made, "" without.
func (t *Task) identity() string {
	file := t.dir.File(hostdir.IdentityFile)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

func (t *Task) removeIdentity() {
	t.identityGone.Store(true)
	t.host.Identities.Drop(t.dir.File(hostdir.IdentityFile))
	if err := os.RemoveAll(t.dir.File(hostdir.IdentityDir)); err != nil {
		t.host.Log.Error("the actors' identity not removed", "error", err)
	}
}
