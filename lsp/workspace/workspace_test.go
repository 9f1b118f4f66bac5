package workspace

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang/outline"
)

// opened is a workspace with the .hcl files of a directory open.
type opened struct {
	*Workspace

	dir       string
	published chan Published
	found     map[string][]string // the last diagnostics of each file
	version   map[string]int      // of the buffer that they are of
}

func open(t *testing.T, texts map[string]string, options Options) *opened {
	t.Helper()
	o := &opened{dir: t.TempDir(), published: make(chan Published, 1000), found: map[string][]string{}, version: map[string]int{}}
	for name, text := range texts {
		path := filepath.Join(o.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	options.Base, options.Publish = o.dir, func(p Published) { o.published <- p }
	o.Workspace = New(ctx, options)
	t.Cleanup(func() {
		cancel()
		o.Wait()
	})
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if filepath.Dir(name) == "." {
			o.Open(filepath.Join(o.dir, name), 1, []byte(texts[name]))
		}
	}
	return o
}

// until takes what is published until the diagnostics are some.
func (o *opened) until(t *testing.T, want []string) {
	t.Helper()
	o.untilThat(t, want, slices.Equal)
}

// untilThat takes what is published until the diagnostics compare well.
func (o *opened) untilThat(t *testing.T, want []string, compare func(got, want []string) bool) {
	t.Helper()
	for {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(o.found)) {
			all = append(all, o.found[name]...)
		}
		slices.Sort(all)
		if len(o.found) > 0 && compare(all, want) {
			return
		}
		select {
		case p := <-o.published:
			o.found[p.Path], o.version[p.Path] = lines(p.Diags), p.Version
		case <-time.After(5 * time.Minute):
			t.Fatalf("got  %q\nwant %q", all, want)
		}
	}
}

func lines(diags hcl.Diagnostics) []string {
	found := make([]string, 0, len(diags))
	for _, d := range diags {
		at := ""
		if d.Subject != nil {
			at = d.Subject.String()
		}
		if filepath.Dir(at) != "." {
			continue // in a module: checked after the pause
		}
		found = append(found, at+" "+d.Summary)
	}
	return found
}

// validated is what fray validate finds in a directory with the texts of the buffers.
func (o *opened) validated(t *testing.T, texts map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, diags := configuration.Judge([]string{dir}, configuration.Options{})
	for _, d := range diags {
		if d.Subject != nil {
			d.Subject.Filename, _ = filepath.Rel(dir, d.Subject.Filename)
		}
	}
	found := lines(diags)
	slices.Sort(found)
	return found
}

// TestAffectedAgrees: after each of many edits, what the affected blocks alone give is what
// fray validate finds in all of them: the pause never comes.
func TestAffectedAgrees(t *testing.T) {
	t.Parallel()
	const text = `variable "corpus" {
  default = "gs://corpus"
}

locals {
  name  = "${var.corpus}/x"
  count = 2
}

provider "local" {
  cpu = 8
}

namespace "prod" {
}

module "pool" {
  source = "./pool"
  size   = local.count
}

job "prepare" {
  command = ["x", local.name]
  count   = local.count
}

job_group "rl" {
  job "learner" {
    command    = ["x", job.prepare[0].id]
    depends_on = [module.pool]
  }
}

job "train" {
  namespace = namespace.prod
  command   = ["🚀", module.pool.double, job_group.rl.job.learner.id]
}

output "all" {
  value = [job.train.id, var.corpus]
}
`
	texts := map[string]string{"main.hcl": text, "pool/main.hcl": "variable \"size\" {}\noutput \"double\" {\n  value = var.size * 2\n}\n"}
	o := open(t, texts, Options{Pause: time.Hour, Whole: 0})
	o.until(t, nil)
	path := filepath.Join(o.dir, "main.hcl")
	version := 1
	change := func(f func(string) string) {
		version++
		texts["main.hcl"] = f(texts["main.hcl"])
		o.Change(path, version, func(f *outline.File) *outline.File {
			from, to := 0, len(f.Text)
			anew := texts["main.hcl"]
			for from < to && from < len(anew) && f.Text[from] == anew[from] {
				from++
			}
			end := len(anew)
			for to > from && end > from && f.Text[to-1] == anew[end-1] {
				to, end = to-1, end-1
			}
			return f.Edit(outline.Edit{Start: from, End: to, Text: []byte(anew[from:end])})
		})
	}
	for _, edit := range []struct{ old, anew string }{
		{"local.name]", "local.nam]"},
		{`variable "corpus"`, "\n\nvariable \"corps\""},
		{"count = 2", "count = -1"},
		{"count = 2", "# a line more\n  count = \"x\""},
		{`job "train"`, `job "prepare"`},
		{`namespace "prod"`, `namespace "test"`},
		{"size   = local.count", "sise   = local.count"},
		{"double, job_group", "dubble, job_group"},
		{"job \"learner\" {", "job \"learner\" {\n    nonsense = 1"},
		{"[job.train.id", "[job.train.idd"},
		{`default = "gs://corpus"`, `default = local.name`},
	} {
		before := texts["main.hcl"]
		change(func(s string) string { return replaceOnce(t, s, edit.old, edit.anew) })
		o.until(t, o.validated(t, texts))
		change(func(string) string { return before })
		o.until(t, nil)
	}
	// Errors of the syntax are those of the block alone: with the whole file, others follow from them.
	for _, edit := range []struct{ old, anew string }{
		{"name  =", "name  "},
		{"command   = [\"🚀\"", "command   = [\"🚀"},
		{"}\n\noutput", "\n\noutput"},
	} {
		before := texts["main.hcl"]
		change(func(s string) string { return replaceOnce(t, s, edit.old, edit.anew) })
		o.untilThat(t, o.validated(t, texts), func(got, want []string) bool {
			return len(got) > 0 && got[0] == want[0] && !slices.ContainsFunc(got, func(s string) bool { return !slices.Contains(want, s) })
		})
		change(func(string) string { return before })
		o.until(t, nil)
	}
}

// TestManyAffected: a change that affects more blocks than are checked at once shows the findings of
// some of them at once, and those of all soon: the long pause never comes.
func TestManyAffected(t *testing.T) {
	t.Parallel()
	const outputs = 4 * maxAffected
	var text strings.Builder
	text.WriteString("variable \"corpus\" {\n}\n")
	for i := range outputs {
		fmt.Fprintf(&text, "output \"o%d\" {\n  value = var.corpus\n}\n", i)
	}
	o := open(t, map[string]string{"main.hcl": text.String()}, Options{Pause: time.Hour, ShortPause: time.Millisecond})
	o.until(t, nil)
	path := filepath.Join(o.dir, "main.hcl")
	for i, edit := range []struct {
		old, anew string
		wrong     int
	}{{`"corpus"`, `"corpora"`, outputs}, {`"corpora"`, `"corpus"`, 0}} {
		o.Change(path, i+2, func(f *outline.File) *outline.File {
			at := strings.Index(string(f.Text), edit.old)
			return f.Edit(outline.Edit{Start: at, End: at + len(edit.old), Text: []byte(edit.anew)})
		})
		first := -1
		o.untilThat(t, nil, func(got, _ []string) bool {
			if o.version[path] == i+2 && first < 0 {
				first = len(got)
			}
			return o.version[path] == i+2 && len(got) == edit.wrong
		})
		if first == 0 || first == outputs {
			t.Errorf("the first answer to %s has %d findings; want those of some blocks changed, not of all or none", edit.anew, first)
		}
	}
}

// TestPrefixes: typed from the first byte to the last, each example is checked without a panic,
// and at its end it is valid.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	const step = 193 // bytes between two prefixes whose diagnostics are waited for
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, whole := range []int{0, 1000} {
			o := open(t, map[string]string{"main.hcl": ""}, Options{Pause: time.Hour, Whole: whole})
			path := filepath.Join(o.dir, "main.hcl")
			for n := range len(text) + 1 {
				o.Change(path, n+2, func(f *outline.File) *outline.File {
					at := len(f.Text)
					return f.Edit(outline.Edit{Start: at, End: at, Text: text[at:n]})
				})
				if n%step != 0 && n != len(text) {
					continue
				}
				for p := range o.published {
					if p.Path == path && p.Version == n+2 {
						break
					}
				}
			}
		}
	}
}

func replaceOnce(t *testing.T, text, old, anew string) string {
	t.Helper()
	before, after, ok := strings.Cut(text, old)
	if !ok {
		t.Fatalf("%q is not there", old)
	}
	return before + anew + after
}
