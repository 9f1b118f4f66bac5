package modules

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/propertytest"
)

const childRoot = "FRAY_TEST_GET_ROOT"

// The test binary is also the process that is killed: it gets, and ends.
func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		_, _, diags := Getter{}.Get(context.Background(), []string{root})
		if diags.HasErrors() {
			fmt.Fprintln(os.Stderr, diags)
			os.Exit(1)
		}
		os.Exit(0)
	}
	propertytest.Main(m)
}

// Killed at any moment, a get leaves an archive installed whole or not at all.
func TestKilledGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"main.hcl": ""}
	for i := range 60 {
		files[fmt.Sprintf("%d/x.txt", i)] = rand.Text()
	}
	w.has("pool-1.0.0.tar.zst", files)
	w.calls("pool")
	below := string(cacheOf(w.root))
	for _, moment := range []string{tmpPrefix + "*/archive", tmpPrefix + "*/files/0/x.txt", tmpPrefix + "*/files/30/x.txt", "pool-*", "pool-*"} {
		for tries := 0; !killedWhen(t, w.root, filepath.Join(below, moment)); tries++ {
			if tries == 50 {
				t.Fatalf("each get ended before anybody saw %s", moment)
			}
		}
		places, err := filepath.Glob(filepath.Join(below, "pool-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range places {
			if got := len(tree(t, place)); got != len(files) {
				t.Errorf("killed when there was %s: %s has %d files of %d", moment, place, got, len(files))
			}
		}
	}
	if _, err := w.get(Getter{}); err != nil {
		t.Error(err)
	}
	if err := w.parse(); err != nil {
		t.Errorf("after all: %v", err)
	}
}

// killedWhen starts a get with nothing installed and kills it as soon as a
// pattern matches, or reports that it ended before.
func killedWhen(t *testing.T, root, pattern string) bool {
	t.Helper()
	if err := os.RemoveAll(string(cacheOf(root))); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childRoot+"="+root)
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = child.Wait() // by a signal, or not
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return false
		default:
		}
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			_ = child.Process.Kill() // or it has just ended
			<-ended
			return true
		}
	}
}

// A later get removes what killed processes leave, once no process can use it.
func TestLeftoversAreSwept(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := cacheOf(root)
	now := time.Now()
	writeTree(t, string(c), map[string]string{".tmp-old/files/x": "", ".tmp-new/files/x": "", "pool-1.0.0-0/x": ""})
	for _, name := range []string{".tmp-old", "pool-1.0.0-0"} {
		if err := os.Chtimes(filepath.Join(string(c), name), now, now.Add(-2*tmpAge)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.prepare(now); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{".tmp-old": false, ".tmp-new": true, "pool-1.0.0-0": true, ".gitignore": true} {
		_, err := os.Stat(filepath.Join(string(c), name))
		if there := !errors.Is(err, fs.ErrNotExist); there != want {
			t.Errorf("%s is there: %v, want %v (%v)", name, there, want, err)
		}
	}
}

// A store beside the modules takes them for none of its objects, and so neither
// copies nor removes them when it moves.
func TestModulesAreHiddenFromStores(t *testing.T) {
	if base := filepath.Base(string(cacheOf("/x"))); !strings.HasPrefix(base, ".") {
		t.Errorf("the cache is %s; stores list what does not begin with a dot", base)
	}
}
