package hosts

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestScriptsRunWhileProcessesStart: a machine boots while others do, whose processes begin with all files that are
// open at that moment.
func TestScriptsRunWhileProcessesStart(t *testing.T) {
	dir := t.TempDir()
	var others sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.CommandContext(t.Context(), "true").Run()
				}
			}
		})
	}
	for range 100 {
		file := filepath.Join(dir, "script")
		if err := writeProgram(file, "#!/bin/sh\n"); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), file).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	}
	close(done)
	others.Wait()
}
