package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The program that is released holds nothing that only tests use. What they need
// of it besides (crash points, a lease that lapses soon, a wrong clock) is in
// testdata/rig, and is added where a program for tests is built: whole files, and
// calls of what these define, put into the sources on the way to the compiler.

// splice is one change of a source file: what is there exactly once, and what the
// program for tests has in its place.
type splice struct{ file, was, is string }

// The sources that are spliced, from this directory.
const (
	stackSource = "../../stack/stack.go"
	leaseSource = "../../stack/lease.go"
)

// crashRig wires testdata/rig/rig.go in.
var crashRig = []splice{
	{stackSource, "st.Keys = NewKeys(opened, ", "opened = rigged.Store(opened)\n\tst.Keys = NewKeys(opened, "},
	{stackSource, "schema.ProviderLocal: p}", "schema.ProviderLocal: rigged.Provider(p)}"},
	{stackSource, "all[schema.ProviderGCP] = cloud", "all[schema.ProviderGCP] = rigged.Provider(cloud)"},
	{stackSource, "store.LeaseConfig{Wait: wait,", "store.LeaseConfig{TTL: rigged.leaseTTL, Wait: wait,"},
}

// buildRigged builds fray with files of testdata/rig and splices, to a path.
func buildRigged(path string, files []string, splices []splice, flags ...string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fray-rig-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, name := range files {
		overlay.Replace[filepath.Join(here, name)] = filepath.Join(here, "testdata", "rig", filepath.Base(name))
	}
	texts := map[string]string{}
	for _, s := range splices {
		if texts[s.file] == "" {
			text, err := os.ReadFile(s.file)
			if err != nil {
				return err
			}
			texts[s.file] = string(text)
		}
		if n := strings.Count(texts[s.file], s.was); n != 1 {
			return fmt.Errorf("%s has %q %d times; change the splice in rigged_test.go with it", s.file, s.was, n)
		}
		texts[s.file] = strings.Replace(texts[s.file], s.was, s.is, 1)
	}
	for name, text := range texts {
		spliced := filepath.Join(dir, strings.ReplaceAll(name, string(filepath.Separator), "_"))
		if err := os.WriteFile(spliced, []byte(text), 0o600); err != nil {
			return err
		}
		overlay.Replace[filepath.Join(here, name)] = spliced
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o600); err != nil {
		return err
	}
	build := exec.Command("go", append(append([]string{"build", "-ldflags=-s -w", "-overlay", list, "-o", path}, flags...), ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build a fray for tests: %w\n%s", err, out)
	}
	return nil
}

// crashingFray is a fray with the crash points of testdata/rig/rig.go, built once.
var crashingFray = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(fray), "rigged", "fray")
	return path, buildRigged(path, []string{"../../stack/rig.go"}, crashRig)
})

// withCrashPoints is crashingFray for a test that needs it.
func withCrashPoints(t *testing.T) string {
	t.Helper()
	path, err := crashingFray()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
