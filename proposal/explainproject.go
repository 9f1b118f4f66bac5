package proposal

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/state"
)

// explainProjects names the files that changed in the projects of a plan. What cannot be
// read is left out: the plan shows all the same that the project changed.
func explainProjects(ctx context.Context, l *configuration.Loaded, p *plan.Plan, doc *state.Document) {
	files := map[plan.BundleChange][]plan.FileChange{}
	recorded, measured := recordedBundles(doc), slices.Collect(maps.Keys(l.Bundles))
	for _, c := range p.BundleChanges() {
		files[c] = projectChanges(ctx, l, startingWith(recorded, c.Before), startingWith(measured, c.After))
	}
	p.ExplainProjects(files)
}

// projectChanges are the files in which a project that is stored and one that was
// measured differ; none where one of them cannot be read.
func projectChanges(ctx context.Context, l *configuration.Loaded, before, after string) []plan.FileChange {
	pair := plan.BundleChange{Before: before, After: after}
	if known, ok := l.Projects.Compared[pair]; ok {
		return known
	}
	dir, ok := l.Bundles[after]
	if !ok { // of a state whose files are elsewhere
		return nil
	}
	was, err := bundle.StoredFiles(ctx, l.Stack.Store, before)
	if err != nil {
		return nil
	}
	is, err := bundle.FilesOf(dir)
	if err != nil {
		return nil
	}
	if l.Projects.Compared == nil {
		l.Projects.Compared = map[plan.BundleChange][]plan.FileChange{}
	}
	l.Projects.Compared[pair] = fileChanges(bundle.Differences(was, is))
	return l.Projects.Compared[pair]
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
		verb := planchange.FileChanged
		switch {
		case !d.Before:
			verb = planchange.FileAdded
		case !d.After:
			verb = planchange.FileRemoved
		}
		changes = append(changes, plan.FileChange{Path: d.Path, Verb: verb})
	}
	return changes
}
