package check

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/mark"
)

// namedPath is something that wishes name, and those wishes.
type namedPath struct {
	path string
	by   []*wish
}

// gather finds what wishes name, by its path, each once.
func (c *checker) gather(of func(*wish) []string) []*namedPath {
	byPath := map[string]*namedPath{}
	var all []*namedPath
	for i := range c.wishes {
		w := &c.wishes[i]
		for _, p := range of(w) {
			if byPath[p] == nil {
				byPath[p] = &namedPath{path: p}
				all = append(all, byPath[p])
			}
			byPath[p].by = append(byPath[p].by, w)
		}
	}
	return all
}

// absent looks up what wishes name and returns what is provably not there.
func (c *checker) absent(ctx context.Context, service string, named []*namedPath) []*namedPath {
	var gone []*namedPath
	var mu sync.Mutex
	eachAtOnce(c, named, func(l *namedPath) {
		var is struct{}
		err := c.rest.get(ctx, service, l.path, &is)
		c.passes(err)
		if isMissing(err) {
			mu.Lock()
			defer mu.Unlock()
			gone = append(gone, l)
		}
	})
	slices.SortFunc(gone, func(a, b *namedPath) int { return strings.Compare(a.path, b.path) })
	return gone
}

// inCompute is the path of what a user names in short, or as a path of its own.
func (c *checker) inCompute(name, folder string) string {
	if i := strings.Index(name, "projects/"); i >= 0 {
		return "compute/v1/" + name[i:]
	}
	return c.computePath(folder + url.PathEscape(name))
}

// networks reports networks and subnetworks that are not there.
func (c *checker) networks(ctx context.Context) {
	networks := c.gather(func(w *wish) []string {
		if w.spec.Cloud.Network == "" && w.spec.Cloud.Subnetwork != "" {
			return nil
		}
		return []string{c.inCompute(cmp.Or(w.spec.Cloud.Network, "default"), "global/networks/")}
	})
	subnetworks := c.gather(func(w *wish) []string {
		if w.spec.Cloud.Subnetwork == "" {
			return nil
		}
		var paths []string
		for _, region := range w.regions() {
			paths = append(paths, c.inCompute(w.spec.Cloud.Subnetwork, "regions/"+region+"/subnetworks/"))
		}
		return paths
	})
	for _, l := range c.absent(ctx, "compute", networks) {
		for _, w := range l.by {
			detail := fmt.Sprintf("There is no network %s. `gcloud compute networks list --project=%s` lists those that there are.", path.Base(l.path), c.config.Project)
			if w.spec.Cloud.Network == "" {
				detail = fmt.Sprintf("Project %s has no network named default, which is used where none is named: write network, or subnetwork.", c.config.Project)
			}
			c.add(problemAt(w.at("network", w.spec.Cloud.Network == w.from.Cloud.Network), "Network not found", detail))
		}
	}
	for _, l := range c.absent(ctx, "compute", subnetworks) {
		region := path.Base(path.Dir(path.Dir(l.path)))
		for _, w := range l.by {
			at := w.at("subnetwork", w.spec.Cloud.Subnetwork == w.from.Cloud.Subnetwork)
			detail := fmt.Sprintf("There is no subnetwork %s in %s, and a subnetwork is in one region. Make one of that name there, or leave the region's zones out.", path.Base(l.path), region)
			c.add(problemAt(at, "Subnetwork not found", detail))
		}
	}
}

// accounts reports service accounts that are not there.
func (c *checker) accounts(ctx context.Context) {
	named := c.gather(func(w *wish) []string {
		if w.spec.Cloud.ServiceAccount == "" || !strings.Contains(w.spec.Cloud.ServiceAccount, "@") {
			return nil
		}
		return []string{"v1/projects/-/serviceAccounts/" + url.PathEscape(w.spec.Cloud.ServiceAccount)}
	})
	for _, l := range c.absent(ctx, "iam", named) {
		for _, w := range l.by {
			c.add(problemAt(w.at("service_account", w.spec.Cloud.ServiceAccount == w.from.Cloud.ServiceAccount), "Service account not found", fmt.Sprintf(
				"There is no service account %s, or it was deleted. `gcloud iam service-accounts list --project=%s` lists those that there are.", w.spec.Cloud.ServiceAccount, c.config.Project)))
		}
	}
}

// disks reports disks that are not there. One that is in some of the zones
// keeps slices to those.
func (c *checker) disks(ctx context.Context) {
	pathIn := func(disk, zone string) string {
		name, _, _ := strings.Cut(disk, ":")
		return c.inCompute(name, "zones/"+zone+"/disks/")
	}
	named := c.gather(func(w *wish) []string {
		var paths []string
		for _, disk := range mark.SplitList(w.spec.Cloud.Disks) {
			for _, zone := range w.zones {
				paths = append(paths, pathIn(disk, zone))
			}
		}
		return paths
	})
	gone := map[string]bool{}
	for _, l := range c.absent(ctx, "compute", named) {
		gone[l.path] = true
	}
	for i := range c.wishes {
		w := &c.wishes[i]
		for _, disk := range mark.SplitList(w.spec.Cloud.Disks) {
			lacking := slices.DeleteFunc(slices.Clone(w.zones), func(zone string) bool { return !gone[pathIn(disk, zone)] })
			c.lackingDisk(w, disk, lacking)
		}
	}
}

func (c *checker) lackingDisk(w *wish, disk string, lacking []string) {
	const summary = "Disk not found"
	name, _, _ := strings.Cut(disk, ":")
	at := w.at("disks", w.spec.Cloud.Disks == w.from.Cloud.Disks)
	switch {
	case len(lacking) == 0:
	case len(lacking) == len(w.zones):
		c.add(problemAt(at, summary, fmt.Sprintf("There is no disk %s in %s. Make it first, in a zone of the slices: `gcloud compute disks list --project=%s` lists those that there are.",
			name, strings.Join(lacking, ", "), c.config.Project)))
	default:
		c.add(warningAt(at, summary, fmt.Sprintf("A disk is in one zone, and %s is not in %s: nothing comes up there. Leave these zones out.", name, strings.Join(lacking, ", "))))
	}
}
