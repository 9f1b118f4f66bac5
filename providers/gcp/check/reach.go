package check

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/mark"
)

// subnetwork is what matters of one here.
type subnetwork struct {
	Network      string `json:"network"`
	Range        string `json:"ipCidrRange"`
	GoogleAccess *bool  `json:"privateIpGoogleAccess"`
}

// router is one of a region, with its Cloud NATs.
type router struct {
	Network string     `json:"network"`
	NATs    []struct{} `json:"nats"`
}

// networkPlace is where machines of a wish are: a region of a network.
type networkPlace struct {
	region  string
	path    string // of the network, "compute/v1/projects/p/global/networks/n"
	subnet  subnetwork
	readAll bool // the subnetwork could be read
}

func (p *networkPlace) name() string { return path.Base(p.path) }

// project is that of the network, which may be another one's (Shared VPC).
func (p *networkPlace) project() string {
	parts := strings.Split(p.path, "/")
	if i := slices.Index(parts, "projects"); i >= 0 && i+1 < len(parts) {
		return parts[i+1]
	}
	return ""
}

// networkFacts are what was read of networks, by path; what could not be read is missing.
type networkFacts struct {
	mu        sync.Mutex
	subnets   map[string]subnetwork
	firewalls map[string]effectiveFirewalls
	routers   map[string][]router
}

// reach reports machines that do not reach each other, or what they fetch.
func (c *checker) reach(ctx context.Context) {
	facts := &networkFacts{subnets: map[string]subnetwork{}, firewalls: map[string]effectiveFirewalls{}, routers: map[string][]router{}}
	read(ctx, c, facts, facts.subnets, lookup{"subnetworks", "compute", "compute.subnetworks.get", "roles/compute.networkViewer"},
		distinct(c.wishes, func(w *wish) []string {
			if !w.isGang() && len(w.needs.ports) == 0 && !w.spec.Cloud.Live.InternalIPs {
				return nil
			}
			var paths []string
			for _, region := range w.regions() {
				paths = append(paths, c.subnetPath(w, region))
			}
			return paths
		}))
	read(ctx, c, facts, facts.firewalls, lookup{"firewall rules", "compute", "compute.networks.getEffectiveFirewalls", "roles/compute.networkViewer"},
		distinct(c.wishes, func(w *wish) []string {
			if !w.isGang() && len(w.needs.ports) == 0 {
				return nil
			}
			return eachPlace(c, facts, w, firewallPath)
		}))
	var routers sync.Mutex
	eachAtOnce(c, distinct(c.wishes, func(w *wish) []string {
		if !w.spec.Cloud.Live.InternalIPs {
			return nil
		}
		return eachPlace(c, facts, w, routerPath)
	}), func(at string) {
		var found struct {
			Items []router `json:"items"`
		}
		if err := c.rest.get(ctx, "compute", at, &found); err != nil {
			c.unread(lookup{"Cloud NAT", "compute", "compute.routers.list", "roles/compute.networkViewer"}, err)
			return
		}
		routers.Lock()
		defer routers.Unlock()
		facts.routers[at] = found.Items
	})
	for i := range c.wishes {
		n := networkCheck{checker: c, facts: facts, wish: &c.wishes[i]}
		n.between()
		n.outside()
	}
}

// read reads resources by their paths, as far as these credentials may.
func read[T any](ctx context.Context, c *checker, facts *networkFacts, into map[string]T, l lookup, paths []string) {
	eachAtOnce(c, paths, func(at string) {
		var found T
		if err := c.rest.get(ctx, l.api, at, &found); err != nil {
			c.unread(l, err)
			return
		}
		facts.mu.Lock()
		defer facts.mu.Unlock()
		into[at] = found
	})
}

func firewallPath(p networkPlace) string { return p.path + "/getEffectiveFirewalls" }

func routerPath(p networkPlace) string {
	return "compute/v1/projects/" + p.project() + "/regions/" + p.region + "/routers"
}

// subnetPath is the path of a wish's subnetwork in a region: where it names none,
// that of the network's name, which networks make in every region by themselves.
func (c *checker) subnetPath(w *wish, region string) string {
	folder := "regions/" + region + "/subnetworks/"
	if w.spec.Cloud.Subnetwork != "" {
		return c.inCompute(w.spec.Cloud.Subnetwork, folder)
	}
	network := cmp.Or(w.spec.Cloud.Network, "default")
	if strings.Contains(network, "/global/networks/") {
		project, _, _ := strings.Cut(c.inCompute(network, ""), "/global/")
		return project + "/" + folder + path.Base(network)
	}
	return c.computePath(folder + url.PathEscape(network))
}

// networkCheck checks the networks of one wish.
type networkCheck struct {
	checker *checker
	facts   *networkFacts
	wish    *wish
}

// places are where the machines may be, as far as their network is known.
func (n networkCheck) places() []networkPlace {
	c, w, facts := n.checker, n.wish, n.facts
	var places []networkPlace
	for _, region := range w.regions() {
		p := networkPlace{region: region}
		p.subnet, p.readAll = facts.subnets[c.subnetPath(w, region)]
		switch {
		case w.spec.Cloud.Network != "" || w.spec.Cloud.Subnetwork == "":
			p.path = c.inCompute(cmp.Or(w.spec.Cloud.Network, "default"), "global/networks/")
		case p.subnet.Network != "":
			p.path = c.inCompute(p.subnet.Network, "")
		default:
			continue
		}
		places = append(places, p)
	}
	return places
}

func eachPlace(c *checker, facts *networkFacts, w *wish, of func(networkPlace) string) []string {
	var paths []string
	for _, p := range (networkCheck{checker: c, facts: facts, wish: w}).places() {
		paths = append(paths, of(p))
	}
	return paths
}

// hostsIn are the machines of a wish in a place.
func (w *wish) hostsIn(p networkPlace) hostsInNetwork {
	subnet, _ := netip.ParsePrefix(p.subnet.Range) // none: not known
	return hostsInNetwork{subnet: subnet, tags: mark.SplitList(w.spec.Cloud.Live.Tags), account: w.spec.Cloud.ServiceAccount}
}

// The ports between hosts (Google Kubernetes Engine documentation, "Deploy TPU
// Multislices"; JAX's own choice on Cloud TPU; libtpu's own).
const (
	portOfTPU       = 8471
	portOfJAX       = 8476
	portOfMegascale = 8081
)

// gangPorts are what hosts of one attempt reach of each other, and what for.
func (w *wish) gangPorts() (ports []int, what string) {
	if !w.isGang() || w.spec.TPU == "" {
		return nil, ""
	}
	ports, what = []int{portOfTPU, portOfJAX}, "libtpu and JAX"
	if w.needs.slices > 1 {
		ports, what = append(ports, portOfMegascale), "libtpu, JAX and MEGASCALE"
	}
	if _, err := accelerators.Parse(w.spec.TPU); err != nil || w.spec.Hosts == 1 {
		ports = ports[1:] // one host has no others in its slice
	}
	return ports, what
}

// The numbers of ports without a fixed one lie there, see package agent/ports.
const (
	firstUsualPort = 20000
	lastUsualPort  = 31999
)

// servedPorts are numbers at which tasks serve, and the names of the ports.
func (w *wish) servedPorts() (ports []int, names []string) {
	for _, p := range w.needs.ports {
		if p.Number != 0 {
			ports = append(ports, p.Number)
		} else {
			ports = append(ports, firstUsualPort, lastUsualPort)
		}
		names = append(names, p.Name)
	}
	slices.Sort(ports)
	return slices.Compact(ports), names
}

// between reports networks in which hosts of a wish do not reach each other.
func (n networkCheck) between() {
	c, w, facts := n.checker, n.wish, n.facts
	const summary = "Hosts cannot reach each other"
	for _, p := range n.places() {
		firewalls, known := facts.firewalls[firewallPath(p)]
		if !known {
			continue
		}
		gang, what := w.gangPorts()
		if blocked, by := firewalls.blocked(w.hostsIn(p), gang); len(blocked) > 0 {
			c.add(problemAt(w.atNetwork(), summary, fmt.Sprintf("In network %s the hosts of %s do not reach each other at TCP %s, for %s: %s. %s",
				p.name(), w.kind(), listed(blocked), what, reasonOf(by), p.rule())))
			continue // which opens all ports
		}
		served, names := w.servedPorts()
		if blocked, by := firewalls.blocked(w.hostsIn(p), served); len(blocked) > 0 {
			c.add(warningAt(w.atNetwork(), summary, fmt.Sprintf("In network %s other hosts do not reach the ports %s of its tasks (TCP %s): %s. %s",
				p.name(), strings.Join(names, ", "), w.listedPorts(blocked), reasonOf(by), p.rule())))
		}
	}
}

func reasonOf(rule string) string {
	if rule == "" {
		return "no firewall rule allows that"
	}
	return "the firewall rule " + rule + " denies that"
}

// rule is what makes the rule that is missing.
func (p *networkPlace) rule() string {
	return fmt.Sprintf("Make a rule with a higher priority (a lower number) than others: `gcloud compute firewall-rules create %[1]s-allow-fray --project=%[2]s --network=%[1]s --direction=INGRESS --priority=900 --allow=tcp,udp,icmp --source-ranges=%[3]s`",
		p.name(), p.project(), cmp.Or(p.subnet.Range, "RANGE_OF_THE_SUBNETWORK"))
}

func listed(ports []int) string {
	var texts []string
	for _, port := range ports {
		texts = append(texts, fmt.Sprint(port))
	}
	return strings.Join(texts, ", ")
}

// listedPorts writes the range of usual ports as such.
func (w *wish) listedPorts(ports []int) string {
	text := listed(ports)
	return strings.Replace(text, fmt.Sprintf("%d, %d", firstUsualPort, lastUsualPort), fmt.Sprintf("%d-%d", firstUsualPort, lastUsualPort), 1)
}

// outside reports machines without external addresses that reach neither Google's
// APIs nor what they fetch from elsewhere.
func (n networkCheck) outside() {
	c, w, facts := n.checker, n.wish, n.facts
	if !w.spec.Cloud.Live.InternalIPs {
		return
	}
	at := w.at("external_ips", w.from.Cloud.Live.InternalIPs)
	for _, p := range n.places() {
		routers, known := facts.routers[routerPath(p)]
		if !known || slices.ContainsFunc(routers, func(r router) bool { return len(r.NATs) > 0 && path.Base(r.Network) == p.name() }) {
			continue
		}
		if p.subnet.GoogleAccess != nil && !*p.subnet.GoogleAccess {
			c.add(warningAt(at, "No way to Google's APIs", fmt.Sprintf(
				"The machines have no external addresses, and network %s has neither Private Google Access nor a Cloud NAT in %s: they cannot fetch fray's program, nor report. "+
					"Turn it on with `gcloud compute networks subnets update %s --project=%s --region=%s --enable-private-ip-google-access`, or write external_ips = true.",
				p.name(), p.region, path.Base(c.subnetPath(w, p.region)), p.project(), p.region)))
		}
		if what := w.outside(); what != "" {
			c.add(warningAt(at, "No way to the internet", fmt.Sprintf(
				"The machines have no external addresses, and network %s has no Cloud NAT in %s: they cannot fetch %s. Make one with `gcloud compute routers create %[1]s-%[2]s --project=%[4]s --network=%[1]s --region=%[2]s` and "+
					"`gcloud compute routers nats create nat --project=%[4]s --router=%[1]s-%[2]s --region=%[2]s --auto-allocate-nat-external-ips --nat-all-subnet-ip-ranges`, or write external_ips = true.",
				p.name(), p.region, what, p.project())))
		}
	}
}

// atNetwork points at the attribute that chose the network, or at the shape.
func (w *wish) atNetwork() providers.Problem {
	switch {
	case w.spec.Cloud.Network != "":
		return w.at("network", w.spec.Cloud.Network == w.from.Cloud.Network)
	case w.spec.Cloud.Subnetwork != "":
		return w.at("subnetwork", w.spec.Cloud.Subnetwork == w.from.Cloud.Subnetwork)
	}
	return w.atShape()
}
