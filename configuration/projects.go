package configuration

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/schema"
)

// Upload ships the project bundles that the store does not have yet. It reports
// of large ones, which may take a while.
func (l *Loaded) Upload(ctx context.Context, report func(format string, args ...any)) error {
	shipper := bundle.Shipper{
		Store: l.Stack.Store,
		Starting: func(p bundle.Project, there int64) {
			dir := p.Dir
			if rel, err := filepath.Rel(l.Stack.Dir, dir); err == nil {
				dir = rel // as it was written
			}
			report("shipping project %s: %s, of which %s are there already",
				dir, schema.Bytes(p.Bundle.Size()), schema.Bytes(there))
		},
	}
	var projects []bundle.Project
	for _, sum := range slices.Sorted(maps.Keys(l.Bundles)) {
		p := bundle.Project{Dir: l.Bundles[sum], Bundle: bundle.Manifest{Sum: sum}}
		if measured, ok := l.Projects.measured[sum]; ok { // else the plan was made by another process
			p.Bundle = measured
		}
		projects = append(projects, p)
	}
	return shipper.Ship(ctx, projects...)
}

// measure finds out what the bundle of a directory is.
func (l *Loaded) measure(dir string) (sum string, err error) {
	m, err := bundle.Measure(dir)
	if err != nil {
		return "", err
	}
	if l.Bundles == nil {
		l.Bundles = map[string]string{}
	}
	if l.Projects.measured == nil {
		l.Projects.measured = map[string]bundle.Manifest{}
	}
	l.Bundles[m.Sum], l.Projects.measured[m.Sum] = dir, m
	return m.Sum, nil
}
