package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/iterator"

	"github.com/fray-ml/fray/schema"
)

// gceFinds is what one pass over a project has found.
type gceFinds struct {
	machines  map[string][]*computepb.Instance // by zone and slice: labelled so
	groups    map[string]*computepb.InstanceGroupManager
	templates []*computepb.InstanceTemplate
	unlisted  map[string]string
}

func (g *gce) list(ctx context.Context, stack string) (listing, error) {
	finds, err := g.find(ctx)
	if err != nil {
		return listing{}, err
	}
	listed := listing{unlisted: finds.unlisted}
	records := g.specs.reader()
	groups := g.readGroups(finds, records, stack, &listed)
	g.lookIntoGroups(ctx, groups)
	g.sweepGroups(ctx, groups)
	for i := range groups {
		if status, ok := groupStatus(&groups[i], g.now()); ok {
			listed.slices = append(listed.slices, status)
		}
	}
	g.readMachines(finds, records, stack, &listed)
	records.done()
	g.forgetGone(stack, listed, groups)
	return listed, nil
}

// find lists templates and groups first and machines last: what a group says
// about its machines is never newer than what is seen of them, so that a group
// that is just being made does not look like one that has lost machines.
func (g *gce) find(ctx context.Context) (gceFinds, error) {
	finds := gceFinds{
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
		return finds, fmt.Errorf("list instance templates: %w", interrupted(ctx, templates))
	}
	if groups != nil {
		return finds, fmt.Errorf("list instance groups: %w", interrupted(ctx, groups))
	}
	finds.unlisted = unlisted
	err := again(ctx, g.reader, func() error {
		clear(finds.machines)
		return g.listMachines(ctx, finds)
	})
	if err != nil {
		return finds, fmt.Errorf("list instances: %w", interrupted(ctx, err))
	}
	return finds, nil
}

// marked is a filter of the service for what carries any stack's mark: what is
// another's is told apart here, so that it can be refused by name.
func marked(prefix string) *string { return new(prefix + "labels." + stackLabel + ":*") }

func (g *gce) listTemplates(ctx context.Context) ([]*computepb.InstanceTemplate, error) {
	bounded, cancel := context.WithTimeout(ctx, callLimit)
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
			return nil, failf(schema.ErrorUnavailable, "the list is not whole: %s", page.GetWarning().GetMessage())
		}
		templates = append(templates, template)
	}
}

func (g *gce) listGroups(ctx context.Context, groups map[string]*computepb.InstanceGroupManager, unlisted map[string]string) error {
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

func (g *gce) listMachines(ctx context.Context, finds gceFinds) error {
	return g.eachMachine(ctx, marked(""), finds.unlisted, func(machine *computepb.Instance) {
		key := baseOf(machine.GetZone()) + "/" + machine.GetLabels()[sliceLabel]
		finds.machines[key] = append(finds.machines[key], machine)
	})
}

// eachMachine lists the instances of all zones, and notes those that are left out.
func (g *gce) eachMachine(ctx context.Context, filter *string, unlisted map[string]string, each func(*computepb.Instance)) error {
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

// everyPage reads a list page by page, which the library's iterators do too; but
// they go from an empty page to the next without a word, and it may say of zones
// that they could not be reached.
func everyPage(ctx context.Context, read func(ctx context.Context, token string) (next string, err error)) error {
	for token := ""; ; {
		bounded, cancel := context.WithTimeout(ctx, callLimit)
		next, err := read(bounded, token)
		cancel()
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// isPartial reports whether a warning says that a list is not whole. That there is
// nothing in a zone is no such thing.
func isPartial(w *computepb.Warning) bool {
	return w != nil && w.GetCode() != computepb.Warning_NO_RESULTS_ON_PAGE.String() && w.GetCode() != ""
}

// notListed notes a zone whose part of a list has a warning.
func notListed(scope string, w *computepb.Warning, unlisted map[string]string) {
	if zone, ok := strings.CutPrefix(scope, "zones/"); ok && isPartial(w) {
		unlisted[zone] = cmp.Or(w.GetMessage(), w.GetCode())
	}
}

// notWhole notes the zones that a page says could not be reached. Where it does not
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
		return failf(schema.ErrorUnavailable, "the list is not whole, and does not say what is missing: %s", cmp.Or(w.GetMessage(), w.GetCode()))
	}
	return nil
}
