package gce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/iterator"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// finds is what one pass over a project has found.
type finds struct {
	machines  map[string][]*computepb.Instance // by zone and slice: labelled so
	groups    map[string]*computepb.InstanceGroupManager
	templates []*computepb.InstanceTemplate
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
		machines: map[string][]*computepb.Instance{}, groups: map[string]*computepb.InstanceGroupManager{}, unlisted: map[string]string{},
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
func marked(prefix string) *string { return new(prefix + "labels." + mark.StackLabel + ":*") }

func (g *api) listTemplates(ctx context.Context) ([]*computepb.InstanceTemplate, error) {
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	it := g.clients.templates.List(bounded, &computepb.ListInstanceTemplatesRequest{Project: g.project, Filter: marked("properties.")})
	var templates []*computepb.InstanceTemplate
	for {
		template, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return templates, nil
		}
		if err != nil {
			return nil, err
		}
		if page, ok := it.Response.(*computepb.InstanceTemplateList); ok && isPartial(page.GetWarning()) {
			return nil, apierror.Errorf(schema.ErrorUnavailable, "the list is not whole: %s", page.GetWarning().GetMessage())
		}
		templates = append(templates, template)
	}
}

func (g *api) listGroups(ctx context.Context, groups map[string]*computepb.InstanceGroupManager, unlisted map[string]string) error {
	request := &computepb.AggregatedListInstanceGroupManagersRequest{Project: g.project}
	return everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		it := g.clients.groups.AggregatedList(ctx, request)
		scopes, next, err := it.InternalFetch(0, token)
		if err != nil {
			return "", err
		}
		page, _ := it.Response.(*computepb.InstanceGroupManagerAggregatedList)
		for _, scope := range scopes {
			notListed(scope.Key, scope.Value.GetWarning(), unlisted)
			for _, group := range scope.Value.GetInstanceGroupManagers() {
				groups[baseOf(group.GetZone())+"/"+group.GetName()] = group
			}
		}
		return next, notWhole(page.GetUnreachables(), page.GetWarning(), unlisted)
	})
}

func (g *api) listMachines(ctx context.Context, finds finds) error {
	return g.eachMachine(ctx, marked(""), finds.unlisted, func(machine *computepb.Instance) {
		key := baseOf(machine.GetZone()) + "/" + machine.GetLabels()[mark.SliceLabel]
		finds.machines[key] = append(finds.machines[key], machine)
	})
}

// eachMachine lists the instances of all zones, and notes those that are left out.
func (g *api) eachMachine(ctx context.Context, filter *string, unlisted map[string]string, each func(*computepb.Instance)) error {
	request := &computepb.AggregatedListInstancesRequest{Project: g.project, Filter: filter}
	return everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		it := g.clients.instances.AggregatedList(ctx, request)
		scopes, next, err := it.InternalFetch(0, token)
		if err != nil {
			return "", err
		}
		page, _ := it.Response.(*computepb.InstanceAggregatedList)
		for _, scope := range scopes {
			notListed(scope.Key, scope.Value.GetWarning(), unlisted)
			for _, machine := range scope.Value.GetInstances() {
				each(machine)
			}
		}
		return next, notWhole(page.GetUnreachables(), page.GetWarning(), unlisted)
	})
}

// Running lists the instances of all zones that run, and notes the zones that are left out.
func (g *api) Running(ctx context.Context, unlisted map[string]string) ([]Instance, error) {
	var found []Instance
	err := again(ctx, g.reader, func() error {
		found = nil
		return g.eachMachine(ctx, new("status=RUNNING"), unlisted, func(i *computepb.Instance) {
			found = append(found, Instance{Zone: baseOf(i.GetZone()), Instance: i})
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
	Instance *computepb.Instance
}

// everyPage reads a list page by page, which the library's iterators do too; but
// they go from an empty page to the next without notice, and it may report zones that
// could not be reached.
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
func isPartial(w *computepb.Warning) bool {
	return w != nil && w.GetCode() != computepb.Warning_NO_RESULTS_ON_PAGE.String() && w.GetCode() != ""
}

// notListed notes a zone whose part of a list has a warning.
func notListed(scope string, w *computepb.Warning, unlisted map[string]string) {
	if zone, ok := strings.CutPrefix(scope, "zones/"); ok && isPartial(w) {
		unlisted[zone] = cmp.Or(w.GetMessage(), w.GetCode())
	}
}

// notWhole notes the zones that a page states could not be reached. Where it does not
// name them, nothing is known of any zone, which is an error. Slices have no
// parts in the regions of these lists.
func notWhole(unreachable []string, w *computepb.Warning, unlisted map[string]string) error {
	for _, each := range w.GetData() {
		if isPartial(w) && strings.Contains(each.GetValue(), "zones/") {
			unreachable = append(unreachable, each.GetValue())
		}
	}
	for _, each := range unreachable {
		if !strings.HasPrefix(each, "regions/") && !strings.Contains(each, "/regions/") {
			unlisted[baseOf(each)] = cmp.Or(w.GetMessage(), "the service could not reach it")
		}
	}
	if isPartial(w) && len(unreachable) == 0 {
		return apierror.Errorf(schema.ErrorUnavailable, "the list is not whole, and does not state what is missing: %s", cmp.Or(w.GetMessage(), w.GetCode()))
	}
	return nil
}
