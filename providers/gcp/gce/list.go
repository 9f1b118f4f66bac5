package gce

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// finds is what one pass over a project has found.
type finds struct {
	machines  map[string][]*computeapi.Instance // by zone and slice: labelled so
	groups    map[string]*computeapi.InstanceGroupManager
	templates []*computeapi.InstanceTemplate
	unlisted  map[string]string
}

// List lists the slices of all zones.
func (g *Engine) List(ctx context.Context, stack string) (engine.Listing, error) {
	finds, err := g.find(ctx)
	if err != nil {
		return engine.Listing{}, err
	}
	listed := engine.Listing{Unlisted: finds.unlisted}
	records := g.specs.Reader()
	groups := g.readGroups(finds, records, stack, &listed)
	g.inspectGroups(ctx, groups)
	g.sweepGroups(ctx, groups)
	for i := range groups {
		if status, ok := groupStatus(&groups[i], g.now()); ok {
			listed.Slices = append(listed.Slices, &status)
		}
	}
	g.readMachines(finds, records, stack, &listed)
	records.Done()
	g.forgetGone(stack, listed, groups)
	return listed, nil
}

// find lists templates and groups first and machines last: what a group states
// about its machines is never newer than what is seen of them, so that a group
// that is just being made is not taken for one that has lost machines.
func (g *api) find(ctx context.Context) (finds, error) {
	finds := finds{
		machines: map[string][]*computeapi.Instance{}, groups: map[string]*computeapi.InstanceGroupManager{}, unlisted: map[string]string{},
	}
	var first sync.WaitGroup
	var templates, groups error
	unlisted := map[string]string{}
	first.Go(func() {
		templates = again(ctx, g.reader, func() (err error) {
			finds.templates, err = g.listTemplates(ctx)
			return err
		})
	})
	first.Go(func() {
		groups = again(ctx, g.reader, func() error { return g.listGroups(ctx, finds.groups, unlisted) })
	})
	first.Wait()
	if templates != nil {
		return finds, fmt.Errorf("list instance templates: %w", apierror.Interrupted(ctx, templates))
	}
	if groups != nil {
		return finds, fmt.Errorf("list instance groups: %w", apierror.Interrupted(ctx, groups))
	}
	finds.unlisted = unlisted
	err := again(ctx, g.reader, func() error {
		clear(finds.machines)
		return g.listMachines(ctx, finds)
	})
	if err != nil {
		return finds, fmt.Errorf("list instances: %w", apierror.Interrupted(ctx, err))
	}
	return finds, nil
}

// marked is a filter of the service for what carries any stack's mark: what is
// another's is found here, so that it can be rejected by name.
func marked(prefix string) string { return prefix + "labels." + mark.StackLabel + ":*" }

func (g *api) listTemplates(ctx context.Context) ([]*computeapi.InstanceTemplate, error) {
	var templates []*computeapi.InstanceTemplate
	err := everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		query := computeapi.Query{"filter": marked("properties."), "pageToken": token}
		page, err := computeapi.Get[computeapi.InstanceTemplateList](ctx, g.client, templatePath(), query)
		if err != nil {
			return "", err
		}
		if isPartial(page.Warning) {
			return "", apierror.Errorf(schema.ErrorUnavailable, "the list is not whole: %s", cmp.Or(page.Warning.Message, page.Warning.Code))
		}
		for _, template := range page.Items {
			if template == nil || template.Name == "" {
				return "", errUnnamed("template")
			}
			templates = append(templates, template)
		}
		return page.NextPageToken, nil
	})
	return templates, err
}

// errUnnamed rejects a list that cannot be what the service answered: one part of it may be as
// wrong as another.
func errUnnamed(what string) error {
	return apierror.Errorf(schema.ErrorUnavailable, "the list is damaged: it has an entry %q without a name", what)
}

func (g *api) listGroups(ctx context.Context, groups map[string]*computeapi.InstanceGroupManager, unlisted map[string]string) error {
	path := computeapi.Path{"aggregated", "instanceGroupManagers"}
	return everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		page, err := computeapi.Get[computeapi.InstanceGroupManagerAggregatedList](ctx, g.client, path, computeapi.Query{"pageToken": token})
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(page.Items)) {
			scope := page.Items[name]
			if scope == nil {
				return "", errUnnamed(name)
			}
			notListed(name, scope.Warning, unlisted)
			for _, group := range scope.InstanceGroupManagers {
				if group == nil || group.Name == "" {
					return "", errUnnamed(name)
				}
				groups[baseOf(group.Zone)+"/"+group.Name] = group
			}
		}
		return page.NextPageToken, notWhole(page.Unreachables, page.Warning, unlisted)
	})
}

func (g *api) listMachines(ctx context.Context, finds finds) error {
	return g.eachMachine(ctx, marked(""), finds.unlisted, func(machine *computeapi.Instance) {
		key := baseOf(machine.Zone) + "/" + machine.Labels[mark.SliceLabel]
		finds.machines[key] = append(finds.machines[key], machine)
	})
}

// eachMachine lists the instances of all zones, and notes those that are left out.
func (g *api) eachMachine(ctx context.Context, filter string, unlisted map[string]string, each func(*computeapi.Instance)) error {
	path := computeapi.Path{"aggregated", "instances"}
	return everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		query := computeapi.Query{"filter": filter, "pageToken": token}
		page, err := computeapi.Get[computeapi.InstanceAggregatedList](ctx, g.client, path, query)
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(page.Items)) {
			scope := page.Items[name]
			if scope == nil {
				return "", errUnnamed(name)
			}
			notListed(name, scope.Warning, unlisted)
			for _, machine := range scope.Instances {
				if machine == nil || machine.Name == "" {
					return "", errUnnamed(name)
				}
				each(machine)
			}
		}
		return page.NextPageToken, notWhole(page.Unreachables, page.Warning, unlisted)
	})
}

// Running lists the instances of all zones that run, and notes the zones that are left out.
func (g *api) Running(ctx context.Context, unlisted map[string]string) ([]Instance, error) {
	var found []Instance
	err := again(ctx, g.reader, func() error {
		found = nil
		return g.eachMachine(ctx, "status=RUNNING", unlisted, func(i *computeapi.Instance) {
			found = append(found, Instance{Zone: baseOf(i.Zone), Instance: i})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", apierror.Interrupted(ctx, err))
	}
	return found, nil
}

// Instance is an instance that runs, and its zone.
type Instance struct {
	Zone     string
	Instance *computeapi.Instance
}

// everyPage reads a list page by page, also those of nothing: they too may report zones
// that could not be reached.
func everyPage(ctx context.Context, read func(ctx context.Context, token string) (next string, err error)) error {
	for token := ""; ; {
		bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
		next, err := read(bounded, token)
		cancel()
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// isPartial reports whether a warning states that a list is not whole. A warning that
// a zone has no results does not.
func isPartial(w computeapi.Warning) bool {
	return w.Code != "" && w.Code != computeapi.WarningNoResults
}

// notListed notes a zone whose part of a list has a warning.
func notListed(scope string, w computeapi.Warning, unlisted map[string]string) {
	if zone, ok := strings.CutPrefix(scope, "zones/"); ok && isPartial(w) {
		unlisted[zone] = cmp.Or(w.Message, w.Code)
	}
}

// notWhole notes the zones that a page states could not be reached. Where it does not
// name them, nothing is known of any zone, which is an error. Slices have no
// parts in the regions of these lists.
func notWhole(unreachable []string, w computeapi.Warning, unlisted map[string]string) error {
	for _, each := range w.Data {
		if isPartial(w) && strings.Contains(each.Value, "zones/") {
			unreachable = append(unreachable, each.Value)
		}
	}
	for _, each := range unreachable {
		if !strings.HasPrefix(each, "regions/") && !strings.Contains(each, "/regions/") {
			unlisted[baseOf(each)] = cmp.Or(w.Message, "the service could not reach it")
		}
	}
	if isPartial(w) && len(unreachable) == 0 {
		return apierror.Errorf(schema.ErrorUnavailable, "the list is not whole, and does not state what is missing: %s", cmp.Or(w.Message, w.Code))
	}
	return nil
}
