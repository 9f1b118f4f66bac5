package local_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/providers/local"
	"github.com/fray-ml/fray/schema"
)

// An agent that cannot work ends at once: its last line is why its slice does not come up. It knows
// where an emulated cloud is, as its store may be there.
func TestWhyAnAgentEnded(t *testing.T) {
	t.Setenv("FRAY_GCP_ENDPOINT", "http://cloud")
	t.Setenv("FRAY_WORKSPACE", "of the command alone")
	for name, c := range map[string]struct{ script, want string }{
		"with an error":         {"echo 'time=1 level=INFO' >&2; echo \"Error: no bucket $FRAY_GCP_ENDPOINT$FRAY_WORKSPACE\" >&2; exit 1", "no bucket http://cloud"},
		"killed":                {"echo 'Error: an older one' >&2; echo 'time=1 level=INFO' >&2; kill -9 $$", ""},
		"without a line at all": {"exit 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			program := filepath.Join(t.TempDir(), "agent")
			syscall.ForkLock.RLock() // no process that starts meanwhile keeps the program open
			err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700)
			syscall.ForkLock.RUnlock()
			if err != nil {
				t.Fatal(err)
			}
			config := p.config()
			config.Executable = program
			provider, err := local.New(config)
			if err != nil {
				t.Fatal(err)
			}
			if err := provider.Create(t.Context(), spec("s", 1)); err != nil {
				t.Fatal(err)
			}
			var last schema.SliceStatus
			eventually(t, "the agent to have ended with its reason", func() bool {
				status, found, err := provider.Get(t.Context(), spec("s", 1))
				if err != nil || !found {
					t.Fatalf("got %v, %t", err, found)
				}
				last = status
				return len(last.Down) == 1 && (c.want == "" || last.DownReason != "")
			})
			if last.DownReason != c.want {
				t.Errorf("got reason %q, want %q", last.DownReason, c.want)
			}
		})
	}
}
