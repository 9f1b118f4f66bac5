package rollout

import (
	"os"
	"testing"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// A watch that follows a configuration ships the program and reports to no terminal.
func TestAgentIsShippedWithoutProgress(t *testing.T) {
	dir, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(release.AgentBinaryVariable, program)
	l := &configuration.Loaded{Stack: &stack.Stack{Store: dir}}
	desired := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderGCP}}, Jobs: []schema.Job{{}}}
	if err := ShipAgent(t.Context(), l, &state.Document{Desired: desired}, nil); err != nil {
		t.Fatal(err)
	}
	if there, err := dir.List(t.Context(), store.BundlesPrefix); err != nil || len(there) != 1 {
		t.Errorf("the store has %v, %v; want the program", there, err)
	}
}
