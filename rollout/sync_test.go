package rollout

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// manyReaders is a controller that syncs values for very many readers of job.a's
// address, and the command that follows it.
func manyReaders(t *testing.T) (controller *apply.Late, follower *valueSync, doc *state.Document) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.hcl")
	const source = `
		job "a" { command = ["x"] }
		job "r" {
			count   = 5000
			command = ["x", job.a.address]
		}
	`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	src, diags := lang.Parse([]string{file})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	cfg, diags := src.Evaluate(eval.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return &apply.Late{Source: src}, &valueSync{late: &apply.Late{Source: src}}, &state.Document{Desired: cfg.Desired}
}

// atAddress is a document in which job.a runs at an address.
func atAddress(doc *state.Document, address string) *state.Document {
	next := *doc
	a := schema.Address{Kind: schema.KindJob, Name: "a"}
	next.Jobs = map[schema.Address]*state.Job{a: {
		ID: "id", Attempts: []state.Attempt{{Tasks: []state.Task{{Address: address, Started: true}}}},
	}}
	return &next
}

// TestValueSyncOfManyReaders: where a controller syncs values for one group of readers after
// the other, the command that follows it waits for all of them, and no longer.
func TestValueSyncOfManyReaders(t *testing.T) {
	for name, stalls := range map[string]bool{"it takes in all": false, "it stalls": true} {
		t.Run(name, func(t *testing.T) {
			controller, follower, doc := manyReaders(t)
			now := time.Unix(1_700_000_000, 0)
			look := func(doc *state.Document) {
				t.Helper()
				now = now.Add(lateWait * 3 / 4)
				if err := follower.observe(doc, now); err != nil {
					t.Fatal(err)
				}
			}
			if look(doc); !follower.over() {
				t.Error("with nothing known it waits")
			}
			doc = atAddress(doc, "10.0.0.1")
			parts := 0
			for look(doc); ; look(doc) {
				desired, err := controller.Refine(doc)
				if err != nil {
					t.Fatal(err)
				}
				if desired == nil {
					break
				}
				if parts++; follower.over() {
					t.Fatalf("before part %d was taken in, it waits for nothing more", parts)
				}
				if stalls {
					break
				}
				next := *doc
				next.Desired = *desired
				doc = &next
			}
			if stalls {
				look(doc)
				look(doc)
			}
			if parts == 0 || !follower.over() {
				t.Errorf("after %d parts it waits still: %v, want not any more", parts, !follower.over())
			}
		})
	}
}
