package agent

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// largeBundle is what was measured of a project that takes several parts.
func largeBundle(t *testing.T) bundle.Project {
	t.Helper()
	dir := t.TempDir()
	data := make([]byte, 20<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	for name, content := range map[string][]byte{"weights": data, "run.sh": []byte("wc -c < weights\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	measured, err := bundle.Measure(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(measured.Parts) < 2 {
		t.Fatalf("there are %d parts, want several", len(measured.Parts))
	}
	return bundle.Project{Dir: dir, Bundle: measured}
}

func TestBundleOfSeveralParts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := largeBundle(t)
	spec := job("")
	spec.Command = []schema.Text{schema.Plain("sh"), schema.Plain("run.sh")}
	spec.Environment.Bundle = p.Bundle.Sum

	missing := r.awaitTask(r.assign(&spec), schema.TaskWorkerFailed)
	if !strings.Contains(missing.Reason, "not in the store") || !strings.Contains(missing.Reason, "apply again") {
		t.Errorf("before it is shipped the reason is %q", missing.Reason)
	}

	if err := (bundle.Shipper{Store: r.store}).Ship(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(r.store.Location(), store.BundleKey(p.Bundle.Parts[1].Sum))
	content, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(damaged, content, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := r.awaitTask(r.assign(&spec), schema.TaskWorkerFailed)
	if !strings.Contains(broken.Reason, damaged) || !strings.Contains(broken.Reason, "delete it") {
		t.Errorf("with a damaged part the reason is %q, want it to name %s", broken.Reason, damaged)
	}
	bundles := filepath.Join(r.dir, hostdir.BundlesDir)
	if _, err := os.Stat(filepath.Join(bundles, p.Bundle.Sum)); err == nil {
		t.Error("a damaged bundle was unpacked")
	}

	// The part is repaired; parts of bundles that are not asked for are removed.
	if err := os.Mkdir(filepath.Join(bundles, ".parts-old"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Delete(t.Context(), store.BundleKey(p.Bundle.Parts[1].Sum)); err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := r.store.Upload(t.Context(), store.BundleKey(p.Bundle.Parts[1].Sum), strings.NewReader(string(content))); err != nil {
		t.Fatal(err)
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if got := strings.TrimSpace(r.output()); got != "20971520" {
		t.Errorf("output is %q, want the size of the file", got)
	}
	if trees := treesIn(t, bundles); len(trees) != 1 {
		t.Errorf("bundles are %v, want the one", trees)
	}
}
