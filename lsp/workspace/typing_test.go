package workspace

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang/outline"
)

// inserted is an edit that puts a text in a place.
func inserted(at int, text string) func(*outline.File) *outline.File {
	return func(f *outline.File) *outline.File {
		return f.Edit(outline.Edit{Start: at, End: at, Text: []byte(text)})
	}
}

// TestTypingWithoutPause: findings in other blocks than the edited one arrive while the user types without a pause,
// though each key comes while everything is checked.
func TestTypingWithoutPause(t *testing.T) {
	t.Parallel()
	const outputs = 4 * maxAffected
	var text strings.Builder
	text.WriteString("variable \"corpus\" {\n}\n")
	for i := range outputs {
		fmt.Fprintf(&text, "output \"o%d\" {\n  value = var.corpus\n}\n", i)
	}
	texts := map[string]string{"main.hcl": text.String()}
	o := open(t, texts, Options{Pause: time.Hour, ShortPause: time.Hour, Patience: time.Millisecond})
	o.until(t, nil)
	path := filepath.Join(o.dir, "main.hcl")
	version := 1
	change := func(old, anew string) {
		version++
		texts["main.hcl"] = replaceOnce(t, texts["main.hcl"], old, anew)
		o.Change(path, version, func(f *outline.File) *outline.File {
			at := strings.Index(string(f.Text), old)
			return f.Edit(outline.Edit{Start: at, End: at + len(old), Text: []byte(anew)})
		})
	}
	change(`"corpus"`, `"corpora"`)
	for deadline := time.Now().Add(5 * time.Minute); len(o.found[path]) < outputs; {
		change("value = var.corpus\n}\noutput \"o1\"", "value = var.corpus  \n}\noutput \"o1\"")
		change("value = var.corpus  \n", "value = var.corpus\n")
		for drained := false; !drained; {
			select {
			case p := <-o.published:
				o.found[p.Path] = lines(p.Diags)
			default:
				drained = true
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %d keys without a pause there are %d findings of %d", version, len(o.found[path]), outputs)
		}
	}
	change(`"corpora"`, `"corpus"`)
	change("output \"o2\" {\n  value = var.corpus\n", "output \"o2\" {\n  value = var.corpuss\n")
	o.until(t, o.validated(t, texts))
}

// TestShortWayToKeys holds that a check of everything never works for long between a key and its end, whenever
// the key comes: with one core the key waits for it. Work is counted in allocations, which do not depend on the
// machine.
func TestShortWayToKeys(t *testing.T) {
	const (
		blocks = 150
		share  = 0.05 // of the work of a whole check; a stage that polls at its end only is more
		keys   = 25
	)
	var text strings.Builder
	text.WriteString("variable \"corpus\" {\n  default = \"gs://corpus\"\n}\n")
	for i := range blocks {
		fmt.Fprintf(&text, "job \"j%d\" {\n  command = [\"x\", \"${var.corpus}/%d\"]\n  resources {\n    cpu = 2\n  }\n  environment {\n    env = { N = \"%d\" }\n  }\n}\n", i, i, i)
		fmt.Fprintf(&text, "output \"o%d\" {\n  value = job.j%d.id\n}\n", i, i)
		fmt.Fprintf(&text, "locals {\n  l%d = \"${var.corpus}/%d\"\n}\n", i, i)
	}
	o := open(t, nil, Options{})
	path := filepath.Join(o.dir, "main.hcl")
	file := outline.Parse("main.hcl", []byte(text.String()))
	// checked runs a check that is canceled at a poll, for a file whose lines have moved. It returns
	// the number of polls before that, and the allocations at each poll and at the end.
	checked := func(cancelAt int) (allocations []uint64) {
		file = inserted(0, "\n")(file)
		o.mu.Lock()
		o.buffers[path] = &buffer{1, file}
		o.mu.Unlock()
		v := o.view(o.dir)
		c := check{view: v, dir: v.directory(o.dir)}
		count := func() {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			allocations = append(allocations, m.Mallocs)
		}
		c.canceled = func() bool {
			if cancelAt > 0 && len(allocations) >= cancelAt {
				return true
			}
			count()
			return false
		}
		if r := c.run(); cancelAt == 0 && len(r.diags) != blocks {
			t.Fatalf("%d findings, want %d: each local is without use; the first are %v", len(r.diags), blocks, r.diags[:min(3, len(r.diags))])
		}
		count()
		return allocations
	}
	whole := checked(0)
	total := float64(whole[len(whole)-1] - whole[0])
	most := 0.0
	for i := range whole[1:] {
		gap := float64(whole[i+1]-whole[i]) / total
		if most = max(most, gap); gap > share {
			t.Errorf("between polls %d and %d of %d a check allocates %.1f%% of what it does in all, want at most %.0f%%", i, i+1, len(whole), gap*100, share*100)
		}
	}
	t.Logf("between two of %d polls at most %.1f%%", len(whole), most*100)
	for key := range keys {
		at := 1 + key*(len(whole)-2)/keys
		ended := checked(at)
		if rest := float64(ended[len(ended)-1]-ended[at-1]) / total; rest > share {
			t.Errorf("after a key at poll %d of %d a check allocates %.1f%% more, want at most %.0f%%", at, len(whole), rest*100, share*100)
		}
	}
}
