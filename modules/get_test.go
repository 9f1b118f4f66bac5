package modules

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/lang"
)

// world is a configuration and a registry in a directory.
type world struct {
	t        testing.TB
	root     string
	registry string // "file:///…"
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, root: filepath.Join(dir, "stack"), registry: "file://" + filepath.Join(dir, "registry")}
	for _, d := range []string{w.root, filepath.Join(dir, "registry")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// has puts an archive into the registry, whatever is there.
func (w *world) has(file string, files map[string]string) {
	w.t.Helper()
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, entry{name: name, text: files[name]})
	}
	path := filepath.Join(strings.TrimPrefix(w.registry, "file://"), file)
	if err := os.WriteFile(path, zstandard(w.t, tarball(w.t, entries...)), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// hasVersions puts versions of a module into the registry.
func (w *world) hasVersions(name string, versions ...string) {
	for _, v := range versions {
		w.has(name+"-"+v+".tar.zst", map[string]string{"main.hcl": "# " + v + "\n"})
	}
}

// calls writes a configuration that calls modules, "NAME CONSTRAINT" each.
func (w *world) calls(calls ...string) {
	w.t.Helper()
	var text strings.Builder
	for i, call := range calls {
		name, version, _ := strings.Cut(call, " ")
		fmt.Fprintf(&text, "module \"m%d\" {\n  source = \"%s/%s\"\n", i, w.registry, name)
		if version != "" {
			fmt.Fprintf(&text, "  version = %q\n", version)
		}
		text.WriteString("}\n")
	}
	writeTree(w.t, w.root, map[string]string{"main.hcl": text.String()})
}

// get returns what a Getter did, as "NAME VERSION fetched was VERSION".
func (w *world) get(g Getter) ([]string, error) {
	w.t.Helper()
	result, _, diags := g.Get(context.Background(), []string{w.root})
	var did []string
	for _, m := range result.Modules {
		line := strings.TrimPrefix(m.String(), w.registry+"/")
		if m.Fetched {
			line += " fetched"
		}
		if m.Was != "" {
			line += " was " + m.Was
		}
		did = append(did, line)
	}
	if result.Locked {
		did = append(did, "locked")
	}
	if diags.HasErrors() {
		return did, diags
	}
	return did, nil
}

func (w *world) wantGet(g Getter, want ...string) {
	w.t.Helper()
	got, err := w.get(g)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		w.t.Fatalf("get: %v (-want +got):\n%s", err, diff)
	}
}

// parse reads the configuration as every other command does.
func (w *world) parse() error {
	_, diags := lang.Parser{Modules: &Installed{}}.Parse([]string{w.root})
	if diags.HasErrors() {
		return diags
	}
	return nil
}

func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("error %v, want one with %q", err, part)
		}
	}
}

func (w *world) lockFile() string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, LockFile))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func TestGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasVersions("pool", "1.0.0", "1.1.0")
	w.calls("pool ~> 1.0", "pool")
	wantError(t, w.parse(), "Module is not installed", LockFile+" has no version of", "run `fray get`")
	w.wantGet(Getter{}, "pool 1.1.0 fetched", "locked")
	if err := w.parse(); err != nil {
		t.Fatal(err)
	}
	if text := w.lockFile(); !strings.Contains(text, `constraints = ["any", "~> 1.0"]`) {
		t.Errorf("the lock file has not the constraints of both calls:\n%s", text)
	}
	w.wantGet(Getter{ReadOnly: true}, "pool 1.1.0")

	// What is locked stays until it is moved, or does not fit any more.
	w.hasVersions("pool", "1.2.0", "2.0.0")
	w.wantGet(Getter{}, "pool 1.1.0")
	w.wantGet(Getter{Upgrade: true}, "pool 1.2.0 fetched was 1.1.0", "pool 2.0.0 fetched was 1.1.0", "locked")
	w.calls("pool 1.0.0", "pool")
	wantError(t, w.parse(), `which "1.0.0" does not allow`, "run `fray get`")
	w.wantGet(Getter{}, "pool 1.0.0 fetched was 2.0.0", "pool 2.0.0", "locked")
	if text := w.lockFile(); strings.Contains(text, "1.2.0") {
		t.Errorf("what nothing uses stays locked:\n%s", text)
	}
	w.calls()
	writeTree(t, w.root, map[string]string{"main.hcl": "locals {\n  a = 1\n}\n"})
	w.wantGet(Getter{}, "locked")
	if _, err := os.Stat(filepath.Join(w.root, LockFile)); !os.IsNotExist(err) {
		t.Errorf("a lock file is left that locks nothing (%v)", err)
	}
}

func TestGetReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasVersions("pool", "1.0.0")
	w.hasVersions("mesh", "1.0.0")
	w.calls("pool")
	_, err := w.get(Getter{ReadOnly: true})
	wantError(t, err, "has no version of", "without --lockfile=readonly")
	w.wantGet(Getter{}, "pool 1.0.0 fetched", "locked")
	was := w.lockFile()
	w.calls("pool", "pool ~> 1.0")
	_, err = w.get(Getter{ReadOnly: true})
	wantError(t, err, "constraints of", "have changed", "without --lockfile=readonly")
	w.calls("pool", "mesh")
	w.wantGet(Getter{}, "mesh 1.0.0 fetched", "pool 1.0.0", "locked")
	w.calls("pool")
	_, err = w.get(Getter{ReadOnly: true})
	wantError(t, err, "mesh 1.0.0 is in it and not used")
	w.wantGet(Getter{}, "pool 1.0.0", "locked")
	if now := w.lockFile(); now != was {
		t.Errorf("the lock file is\n%s\nwant it as before:\n%s", now, was)
	}
}

// The registry's content, the installed files and the lock file must agree.
func TestContentThatIsNotLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasVersions("pool", "1.0.0")
	w.calls("pool")
	w.wantGet(Getter{}, "pool 1.0.0 fetched", "locked")
	installed, err := filepath.Glob(filepath.Join(w.root, ".fray", ".modules", "pool-*", "main.hcl"))
	if err != nil || len(installed) != 1 {
		t.Fatalf("installed: %v, %v", installed, err)
	}

	// Changed here: every command reports it, and Get restores it.
	if err := os.Remove(installed[0]); err != nil {
		t.Fatal(err)
	}
	writeTree(t, filepath.Dir(installed[0]), map[string]string{"main.hcl": "# 1.0.1\n"})
	wantError(t, w.parse(), "were changed in "+filepath.Dir(installed[0]), "`fray get` puts back")
	w.wantGet(Getter{ReadOnly: true}, "pool 1.0.0 fetched")
	if err := w.parse(); err != nil {
		t.Fatal(err)
	}
	// Replaced by something else altogether.
	if err := os.RemoveAll(filepath.Dir(installed[0])); err != nil {
		t.Fatal(err)
	}
	writeTree(t, filepath.Dir(filepath.Dir(installed[0])), map[string]string{filepath.Base(filepath.Dir(installed[0])): "a file"})
	w.wantGet(Getter{}, "pool 1.0.0 fetched")

	// Changed in the registry: where it is installed it still works, elsewhere Get fails.
	w.has("pool-1.0.0.tar.zst", map[string]string{"main.hcl": "# other\n"})
	w.wantGet(Getter{}, "pool 1.0.0")
	if err := os.RemoveAll(filepath.Join(w.root, ".fray")); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.parse(), "pool 1.0.0 is not installed here; run `fray get`")
	for _, g := range []Getter{{}, {Upgrade: true}} {
		_, err = w.get(g)
		entry, lockErr := readLock(w.root)
		if lockErr != nil {
			t.Fatal(lockErr)
		}
		wantError(t, err, "another content than the one that is locked", entry[0].Archive, "remove its block from "+LockFile)
	}
	if err := w.parse(); err == nil {
		t.Error("other content was installed")
	}
	// Removed from the registry.
	if err := os.Remove(filepath.Join(strings.TrimPrefix(w.registry, "file://"), "pool-1.0.0.tar.zst")); err != nil {
		t.Fatal(err)
	}
	_, err = w.get(Getter{})
	wantError(t, err, "not in "+w.registry+" any more")
}

func TestModulesOfArchives(t *testing.T) {
	t.Parallel()
	calling := func(source string) string { return fmt.Sprintf("module \"x\" {\n  source = %q\n}\n", source) }
	w := newWorld(t)
	w.hasVersions("leaf", "1.0.0")
	w.has("outer-1.0.0.tar.zst", map[string]string{
		"main.hcl": calling("./sub"), "sub/main.hcl": calling("../side"), "side/main.hcl": calling(w.registry + "/leaf"),
	})
	w.calls("outer", "outer//side")
	w.wantGet(Getter{}, "leaf 1.0.0 fetched", "outer 1.0.0 fetched", "locked")
	if err := w.parse(); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, source, want string }{
		{"above it", "../leaf", "Module leaves its archive"},
		{"the configuration", "../../..", "Module leaves its archive"},
		{"this machine", w.root, "Module leaves its archive"},
		{"itself", ".", "Module calls itself"},
		{"itself, from the registry", w.registry + "/out", "Module calls itself"},
		{"what is not in it", "./none", "no file or directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := &world{t: t, root: t.TempDir(), registry: w.registry}
			w.has("out-1.0.0.tar.zst", map[string]string{"main.hcl": calling(test.source)})
			w.calls("out")
			_, err := w.get(Getter{})
			wantError(t, err, test.want)
			if _, err := os.Stat(filepath.Join(w.root, LockFile)); !os.IsNotExist(err) {
				t.Errorf("a configuration that is wrong was locked (%v)", err)
			}
		})
	}
	w.calls("outer//nowhere")
	_, err := w.get(Getter{})
	wantError(t, err, "nowhere")
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasVersions("pool", "1.0.0")
	tests := []struct{ name, text, want string }{
		{"no such module", "source = \"" + w.registry + "/pol\"", "here is no archive of"},
		{"no such registry", "source = \"" + w.registry + "/x/pool\"", "no such file or directory"},
		{"no constraint", "source = \"" + w.registry + "/pool\"\n  version = \"latest\"", "is no constraint"},
		{"a directory without ./", "source = \"sub\"", `whose source is written "./sub"`},
		{"terraform's registry", "source = \"acme/pool/gcp\"", "is not where an archive can be"},
		{"no bucket", "source = \"gs://acme/pool\"", "there are no buckets here"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := &world{t: t, root: t.TempDir()}
			writeTree(t, w.root, map[string]string{"main.hcl": "module \"m\" {\n  " + test.text + "\n}\n", "sub/main.hcl": ""})
			_, err := w.get(Getter{})
			wantError(t, err, test.want)
		})
	}
}

// Whatever was got before: what Get reports as installed is what a plan reads, and
// getting again does nothing.
func TestGetIsStable(t *testing.T) {
	t.Parallel()
	versions := []string{"1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0", "2.1.0"}
	constraints := []string{"", "~> 1.0", ">= 1.0", "1.0.0", "< 2.1", "~> 2.0", "1.2.0-rc.1"}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.hasVersions("pool", versions[0])
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			w.hasVersions("pool", rapid.SliceOf(rapid.SampledFrom(versions)).Draw(rt, "published")...)
			var calls []string
			for _, c := range rapid.SliceOfN(rapid.SampledFrom(constraints), 1, 4).Draw(rt, "calls") {
				calls = append(calls, "pool "+c)
			}
			w.calls(calls...)
			before, _ := readLock(w.root)
			g := Getter{Upgrade: rapid.Bool().Draw(rt, "upgrade")}
			run, err := w.get(g)
			if err != nil { // nothing fits
				if after, _ := readLock(w.root); !cmp.Equal(before, after) {
					rt.Fatalf("a get that failed changed the lock file")
				}
				continue
			}
			if err := w.parse(); err != nil {
				rt.Fatalf("after get (%q): %v", run, err)
			}
			locked, _ := readLock(w.root)
			again, err := w.get(Getter{ReadOnly: true})
			if err != nil || strings.Contains(strings.Join(again, " "), "fetched") {
				rt.Fatalf("get again: %q, %v", again, err)
			}
			for _, call := range calls {
				c, err := parseConstraint(strings.TrimPrefix(call, "pool "))
				if err != nil {
					rt.Fatal(err)
				}
				now, _ := locked.serving(w.registry+"/pool", c)
				was, had := before.serving(w.registry+"/pool", c)
				if had && !g.Upgrade && now.Version != was.Version {
					rt.Fatalf("%q moved from %s to %s without being asked to", call, was.Version, now.Version)
				}
			}
		}
	})
}

func TestGetsAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasVersions("pool", "1.0.0")
	w.hasVersions("mesh", "1.0.0")
	w.calls("pool", "mesh")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := w.get(Getter{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := w.parse(); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(w.root, ".fray", ".modules", tmpPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestGetEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hasVersions("pool", "1.0.0")
	w.calls("pool")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	_, _, diags := Getter{}.Get(ctx, []string{w.root})
	wantError(t, diags, "enough")
}
