package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
)

func TestShapes(t *testing.T) {
	tests := []struct {
		shape        shape
		blocks       int // of theirs, which are as many as ours
		jobs, linked int
	}{
		{shapeForEach, 1, 20, 0},
		{shapeTens, 20, 20, 18},
		{shapeStages, 10, 20, 18},
		{shapeChain, 20, 20, 19},
	}
	for _, test := range tests {
		for _, l := range []link{linkValue, linkOrder} {
			t.Run(fmt.Sprint(test.shape, " by ", l), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "fray.hcl")
				if err := os.WriteFile(path, []byte(ours(l).config(test.shape, 20)), 0o600); err != nil {
					t.Fatal(err)
				}
				src, diags := lang.Parse([]string{path})
				if diags.HasErrors() {
					t.Fatal(diags)
				}
				cfg, diags := src.Evaluate(eval.Options{})
				if diags.HasErrors() {
					t.Fatal(diags)
				}
				linked := 0
				for _, j := range cfg.Desired.Jobs {
					if len(j.Uses) == 1 && l == linkValue || len(j.DependsOn) == 1 && l == linkOrder {
						linked++
					}
				}
				if got := len(cfg.Desired.Jobs); got != test.jobs || linked != test.linked {
					t.Errorf("got %d jobs, %d of them linked to one other; want %d, %d", got, linked, test.jobs, test.linked)
				}
				if got := strings.Count(theirs().config(test.shape, 20), "resource "); got != test.blocks {
					t.Errorf("theirs has %d blocks, want %d", got, test.blocks)
				}
			})
		}
	}
}

// TestVerbs runs the commands that the bench measures: they check by themselves
// that what was to happen did.
func TestVerbs(t *testing.T) {
	for _, mail := range []mailboxLocation{mailboxInMemory, mailboxInDir} {
		t.Run(string(mail), func(t *testing.T) {
			dir := t.TempDir()
			config := ours(linkValue).config(shapeStages, 20)
			if err := os.WriteFile(filepath.Join(dir, "fray.hcl"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, v := range []verb{verbPlan, verbApply, verbAgain} {
				r, err := runVerb(t.Context(), v, dir, mail)
				if err != nil {
					t.Fatalf("%s: %v", v, err)
				}
				if saved := r.Saves > 0; saved != (v == verbApply) {
					t.Errorf("%s: got %d writes of the state", v, r.Saves)
				}
			}
			if _, err := runVerb(t.Context(), verbPlan, dir, mail); err == nil {
				t.Error("a plan of what was applied passed as one of something new")
			}
		})
	}
}

// TestIdleStep holds what the part "state" is about: the requests of a step.
func TestIdleStep(t *testing.T) {
	r, err := idleOverBucket(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Idle.String(), "1 requests (1 list)"; got != want {
		t.Errorf("nothing to do: got %s, want %s", got, want)
	}
	if got, want := r.Change.String(), "4 requests (3 get, 1 list)"; got != want {
		t.Errorf("three hosts reported: got %s, want %s", got, want)
	}
}
