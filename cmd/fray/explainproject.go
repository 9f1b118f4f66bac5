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
	recorded, measured := recordedBundles(doc), slices.Collect(maps.Keys(l.bundles))
	for _, c := range p.BundleChanges() {
		files[c] = l.projectChanges(ctx, startingWith(recorded, c.Before), startingWith(measured, c.After))
	}
	p.ExplainProjects(files)
}

// projectChanges are the files in which a project that is stored and one that was
// measured differ; none where one of them cannot be read.
func (l *loaded) projectChanges(ctx context.Context, before, after string) []plan.FileChange {
	pair := plan.BundleChange{Before: before, After: after}
	if known, ok := l.projects.compared[pair]; ok {
		return known
	}
	dir, ok := l.bundles[after]
	if !ok { // of a state whose files are elsewhere
		return nil
	}
	was, err := bundle.StoredFiles(ctx, l.stack.store, before)
	if err != nil {
		return nil
	}
	is, err := bundle.FilesOf(dir)
	if err != nil {
		return nil
	}
	if l.projects.compared == nil {
		l.projects.compared = map[plan.BundleChange][]plan.FileChange{}
	}
	l.projects.compared[pair] = fileChanges(bundle.Differences(was, is))
	return l.projects.compared[pair]
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
