package task

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/state"
)

// Key names one start: a job, an attempt and a generation. It is a file name.
func Key(a *state.Assignment) string {
	sum := sha256.Sum256([]byte(a.Run.Job.String()))
	return fmt.Sprintf("%d-%d-%s", a.Generation, a.Run.Attempt, hex.EncodeToString(sum[:4]))
}

// writeIntent records that this task is about to be started on this host. From
// then on it never is again. What must be written about it later has its space
// from here on: a task that finds none is not started.
func (t *Task) writeIntent() error {
	if t.written {
		return nil
	}
	t.in.At = time.Now()
	err := os.MkdirAll(string(t.dir), 0o700)
	if err == nil {
		err = makeTermination(t.dir)
	}
	if err == nil {
		err = os.MkdirAll(t.dir.File(hostdir.ProfilesDir), 0o700)
	}
	if err == nil {
		err = record.Reserve(t.dir.File(hostdir.ProcessFile), t.dir.File(hostdir.StopFile), t.dir.File(hostdir.ExitFile))
	}
	if err == nil && t.in.BeforeStop != nil {
		err = record.Reserve(t.dir.File(hostdir.HookFile))
	}
	if err == nil && t.in.Health {
		err = record.Reserve(t.dir.File(hostdir.HealthFile))
	}
	if err == nil {
		err = record.WriteJSON(t.dir.File(hostdir.IntentFile), t.in)
	}
	if err == nil {
		t.written = true
		return nil
	}
	err = fmt.Errorf("record start: %w", err)
	if _, there := os.Lstat(t.dir.File(hostdir.IntentFile)); errors.Is(there, os.ErrNotExist) {
		err = errors.Join(err, os.RemoveAll(string(t.dir)))
	}
	return err
}
