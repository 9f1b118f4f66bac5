package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/schema"
)

// upload ships the project bundles that the store does not have yet. It tells
// of large ones, which may take a while.
func (l *loaded) upload(ctx context.Context, tell func(format string, args ...any)) error {
	shipper := bundle.Shipper{
		Store: l.stack.store,
		Starting: func(p bundle.Project, there int64) {
			dir := p.Dir
			if rel, err := filepath.Rel(l.stack.dir, dir); err == nil {
				dir = rel // as it was written
			}
			tell("shipping project %s: %s, of which %s are there already",
				dir, schema.Bytes(p.Bundle.Size()), schema.Bytes(there))
		},
	}
	var projects []bundle.Project
	for _, sum := range slices.Sorted(maps.Keys(l.bundles)) {
		p := bundle.Project{Dir: l.bundles[sum], Bundle: bundle.Manifest{Sum: sum}}
		if measured, ok := l.projects.measured[sum]; ok { // else the plan was made by another process
			p.Bundle = measured
		}
		projects = append(projects, p)
	}
	return shipper.Ship(ctx, projects...)
}

// measure finds out what the bundle of a directory is.
func (l *loaded) measure(dir string) (sum string, err error) {
	m, err := bundle.Measure(dir)
	if err != nil {
		return "", err
	}
	if l.bundles == nil {
		l.bundles = map[string]string{}
	}
	if l.projects.measured == nil {
		l.projects.measured = map[string]bundle.Manifest{}
	}
	l.bundles[m.Sum], l.projects.measured[m.Sum] = dir, m
	return m.Sum, nil
}
