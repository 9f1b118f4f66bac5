package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
)

// explainProjects names the files that changed in the projects of a plan. What cannot be
// read is left out: the plan says all the same that the project changed.
func (l *loaded) explainProjects(ctx context.Context, p *plan.Plan, doc *state.Document) {
	files := map[plan.BundleChange][]plan.FileChange{}
	recorded := recordedBundles(doc)
	for _, c := range p.BundleChanges() {
		before, err := bundle.StoredFiles(ctx, l.stack.store, startingWith(recorded, c.Before))
		if err != nil {
			continue
		}
		measured := startingWith(slices.Collect(maps.Keys(l.bundles)), c.After)
		dir, ok := l.bundles[measured]
		if !ok { // of a state whose files are elsewhere
			continue
		}
		after, err := bundle.FilesOf(dir)
		if err != nil {
			continue
		}
		files[c] = fileChanges(bundle.Differences(before, after))
	}
	p.ExplainProjects(files)
}

// recordedBundles are the digests of the projects that jobs ran with last.
func recordedBundles(doc *state.Document) []string {
	var sums []string
	for i := range doc.Jobs {
		sums = append(sums, doc.Jobs[i].Spec.Environment.Bundle)
	}
	return sums
}

func startingWith(sums []string, beginning string) string {
	for _, sum := range sums {
		if beginning != "" && strings.HasPrefix(sum, beginning) {
			return sum
		}
	}
	return ""
}

func fileChanges(differences []bundle.Difference) []plan.FileChange {
	changes := make([]plan.FileChange, 0, len(differences))
	for _, d := range differences {
		verb := plan.FileChanged
		switch {
		case !d.Before:
			verb = plan.FileAdded
		case !d.After:
			verb = plan.FileRemoved
		}
		changes = append(changes, plan.FileChange{Path: d.Path, Verb: verb})
	}
	return changes
}
