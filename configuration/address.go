package configuration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// AllAddresses are those of everything declared or remembered, sorted.
func AllAddresses(doc *state.Document, desired *schema.Desired) []schema.Address {
	set := map[schema.Address]bool{}
	add := func(a schema.Address) {
		set[a] = true
		set[a.Base()] = true
		if group := a.GroupAddress(); !group.IsZero() {
			set[group] = true
		}
		for _, module := range a.Modules() {
			set[module] = true
		}
	}
	for a := range doc.Jobs {
		add(a)
	}
	for a := range doc.Resources {
		add(a)
	}
	for _, d := range []*schema.Desired{&doc.Desired, desired} {
		if d == nil {
			continue
		}
		for i := range d.Jobs {
			add(d.Jobs[i].Addr)
		}
		for i := range d.Namespaces {
			add(d.Namespaces[i].Addr)
		}
		for i := range d.Reservations {
			add(d.Reservations[i].Addr)
		}
		for i := range d.Groups {
			add(d.Groups[i].Addr)
		}
		for i := range d.Notifications {
			add(d.Notifications[i].Addr)
		}
	}
	return slices.SortedFunc(maps.Keys(set), schema.Address.Compare)
}

func known(addr schema.Address, doc *state.Document, desired *schema.Desired) bool {
	return slices.Contains(AllAddresses(doc, desired), addr)
}

// didYouMean is "; did you mean job.train?" or "; known are …", "" if there is
// nothing at all.
func didYouMean(s string, doc *state.Document, desired *schema.Desired) string {
	var names []string
	for _, a := range AllAddresses(doc, desired) {
		names = append(names, a.String())
	}
	if near := schema.Nearest(s, names); near != "" {
		return "; did you mean " + near + "?"
	}
	if len(names) == 0 {
		return "; this stack has nothing yet"
	}
	const most = 8
	list := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		list += ", …"
	}
	return "; known are " + list
}

// meant is "; did you mean job.train?" for a name without its kind.
func (l *Loaded) meant(name string) string {
	for _, a := range AllAddresses(l.Document, &l.Desired) {
		if a.Name == name {
			return "; did you mean " + a.String() + "?"
		}
	}
	return didYouMean("job."+name, l.Document, &l.Desired)
}

// Addresses parses the values of a flag ("--target") or the arguments of a verb
// ("logs") and refuses those that name nothing.
func (l *Loaded) Addresses(of string, values []string) ([]schema.Address, error) {
	giver, separator := of, "="
	if !strings.HasPrefix(of, "--") {
		giver, separator = "fray "+of, ": "
	}
	var out []schema.Address
	for _, v := range values {
		addr, err := schema.ParseAddress(v)
		if err != nil && schema.ValidName(v) { // a name without its kind
			return nil, fmt.Errorf("%s%s%s: an address has the form KIND.NAME, such as job.%s%s", giver, separator, v, v, l.meant(v))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", giver, err)
		}
		if !known(addr, l.Document, &l.Desired) {
			return nil, fmt.Errorf("%s%s%s: nothing with this address is declared or recorded%s", giver, separator, v, didYouMean(v, l.Document, &l.Desired))
		}
		out = append(out, addr)
	}
	return out, nil
}

// DesiredAddresses are the addresses of the desired configuration.
func DesiredAddresses(d *schema.Desired) []schema.Address {
	var all []schema.Address
	for i := range d.Namespaces {
		all = append(all, d.Namespaces[i].Addr)
	}
	for i := range d.Reservations {
		all = append(all, d.Reservations[i].Addr)
	}
	for i := range d.Groups {
		all = append(all, d.Groups[i].Addr)
	}
	for i := range d.Jobs {
		all = append(all, d.Jobs[i].Addr)
	}
	for i := range d.Notifications {
		all = append(all, d.Notifications[i].Addr)
	}
	return all
}
