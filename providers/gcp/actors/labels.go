package actors

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/providers/gcp"
)

// The labels; package fray.rpc of Python reads the same. Keys and values of labels
// have at most 63 characters: lower case letters, digits, "-" and "_".
// https://cloud.google.com/compute/docs/labeling-resources#requirements
const (
	labelPrefix      = "fray-actor-" // followed by the actor's name; the value is the port
	namespaceLabel   = "fray-namespace"
	defaultNamespace = "default"
	maxLabel         = 63
)

// checkName rejects a name that no label can have.
func checkName(name string) error {
	longest := maxLabel - len(labelPrefix)
	if isLabel(name) && name != "" && len(name) <= longest {
		return nil
	}
	return &rpcerror.Error{Code: rpcerror.CodeMalformed, Actor: name, Message: fmt.Sprintf(
		`a name that is found by labels has 1 to %d characters: lower case letters, digits, "-" and "_"`, longest)}
}

func checkNamespace(namespace string) error {
	if isLabel(namespace) && len(namespace) <= maxLabel {
		return nil
	}
	return fmt.Errorf(`namespace %q is no label's value; it may have at most %d characters: lower case letters, digits, "-" and "_"`,
		namespace, maxLabel)
}

func isLabel(text string) bool { return regexp.MustCompile(`^[a-z0-9_-]*$`).MatchString(text) }

// read takes in a list. What was known of zones that it leaves out stays known.
func (r *Resolver) read(list gcp.MachineList) {
	before := r.known
	r.known, r.bad, r.unlisted = map[string][]resolver.Endpoint{}, map[string]string{}, map[string]string{}
	for zone, why := range list.Unlisted {
		if r.lists(zone) {
			r.unlisted[zone] = why
		}
	}
	slices.SortFunc(list.Machines, func(a, b gcp.Machine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Name, b.Name))
	})
	for _, m := range list.Machines {
		if r.lists(m.Zone) && cmp.Or(m.Labels[namespaceLabel], defaultNamespace) == r.config.Namespace {
			r.readMachine(m)
		}
	}
	for name, endpoints := range before {
		for _, e := range endpoints {
			_, blind := r.unlisted[e.Metadata["zone"]]
			if blind && !slices.ContainsFunc(r.known[name], func(now resolver.Endpoint) bool { return now.Member == e.Member }) {
				r.known[name] = append(r.known[name], e)
			}
		}
	}
}

func (r *Resolver) lists(zone string) bool {
	return len(r.config.Zones) == 0 || slices.Contains(r.config.Zones, zone)
}

// readMachine takes in a machine's labels.
func (r *Resolver) readMachine(m gcp.Machine) {
	for label, value := range m.Labels {
		name, ok := strings.CutPrefix(label, labelPrefix)
		if !ok || name == "" {
			continue
		}
		port, err := strconv.ParseUint(value, 10, 16)
		if err != nil || port == 0 {
			r.bad[name] = fmt.Sprintf("the label %s of %s in %s is %q, which is no port", label, m.Name, m.Zone, value)
			continue
		}
		r.known[name] = append(r.known[name], resolver.Endpoint{
			Name: name, Address: net.JoinHostPort(m.Address, strconv.FormatUint(port, 10)), Namespace: r.config.Namespace,
			Member: m.Zone + "/" + m.Name, Metadata: map[string]string{"zone": m.Zone, "machine": m.Name},
		})
	}
}

// differing are the names whose endpoints are not the same.
func differing(before, after map[string][]resolver.Endpoint) []string {
	both := maps.Clone(before)
	maps.Copy(both, after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(both)), func(name string) bool {
		return slices.EqualFunc(before[name], after[name], func(a, b resolver.Endpoint) bool {
			return a.Member == b.Member && a.Address == b.Address
		})
	})
}
