package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers/local"
	"github.com/fray-ml/fray/schema"
)

// seen runs a task on a slice of so many GPUs and returns the GPUs that CUDA shows to it.
func (p *place) seen(provider *local.Provider, name string, gpus int) string {
	p.t.Helper()
	slice := spec(name, 1)
	slice.GPU = schema.GPU{Type: "h100", Count: gpus}
	p.up(provider, slice)
	return p.visible(slice)
}

func (p *place) visible(slice schema.SliceSpec) string {
	p.t.Helper()
	p.gpu = slice.GPU
	p.assign(slice, 1, `echo "$CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES" >gpus-`+slice.Name)
	p.awaitTasks(slice, 1, schema.TaskSucceeded)
	data, err := os.ReadFile(filepath.Join(p.work, "gpus-"+slice.Name))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// TestSlicesShareGPUs: no GPU is two slices', those of a slice that has gone are free,
// and a slice without any sees none.
func TestSlicesShareGPUs(t *testing.T) {
	p := newPlace(t)
	provider := p.provider()
	for _, test := range []struct {
		name string
		gpus int
		want string
	}{
		{"two", 2, "0,1 0,1"},
		{"one", 1, "2 2"},
		{"none", 0, "void"},
	} {
		if got := p.seen(provider, test.name, test.gpus); got != test.want {
			t.Errorf("the task of %s sees the GPUs %q, want %q", test.name, got, test.want)
		}
	}
	p.down(provider, spec("two", 1))
	if got, want := p.seen(provider, "three", 3), "0,1,3 0,1,3"; got != want {
		t.Errorf("after another slice has gone the task sees the GPUs %q, want %q", got, want)
	}
	p.down(provider, spec("three", 1))
	p.down(provider, spec("one", 1))
	claims, err := os.ReadDir(filepath.Join(p.config().Root, "gpus"))
	if err != nil || len(claims) > 0 {
		t.Errorf("got the claims %v, %v of slices that have gone, want none", claims, err)
	}
}

// TestGPUsAfterACrash: a claim of a slice that was never recorded is no one's, and an
// agent that is started again has the GPUs that it had.
func TestGPUsAfterACrash(t *testing.T) {
	p := newPlace(t)
	provider := p.provider()
	dir := filepath.Join(p.config().Root, "gpus")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for gpu, claim := range map[string]string{"0": "gone/gpu", "1": "half-made/gpu"} {
		if err := os.WriteFile(filepath.Join(dir, gpu), []byte(claim), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	half := filepath.Join(p.config().Root, "slices", "half-made") // its maker has died before the record
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Inventory(t.Context(), "stack-a"); err != nil {
		t.Fatal(err)
	}
	slice := spec("two", 1)
	slice.GPU = schema.GPU{Type: "h100", Count: 2}
	p.up(provider, slice)
	first := p.lockHolder("two", 0, "agent.lock")
	p.kill(first)
	eventually(t, "another agent", func() bool {
		if err := provider.Create(t.Context(), slice); err != nil {
			return false
		}
		agents := p.agents("two")
		return len(agents) == 1 && agents[0] != first // which may take a while to end
	})
	if got, want := p.visible(slice), "0,1 0,1"; got != want {
		t.Errorf("the task sees the GPUs %q, want %q", got, want)
	}
}

// TestGPUsOfAMakerThatDied: a slice that is made again keeps no claim beyond the GPUs that it
// has, else the next one would get a GPU that the machine does not have.
func TestGPUsOfAMakerThatDied(t *testing.T) {
	p := newPlace(t)
	provider := p.provider()
	for dir, file := range map[string]string{"gpus": "1", "slices/first": ""} {
		path := filepath.Join(p.config().Root, dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if file == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(path, file), []byte("first/gpu"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, want string }{{"first", "0 0"}, {"second", "1 1"}} {
		if got := p.seen(provider, test.name, 1); got != test.want {
			t.Errorf("the task of %s sees the GPUs %q, want %q", test.name, got, test.want)
		}
	}
}
