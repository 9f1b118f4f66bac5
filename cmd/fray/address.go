package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// allAddresses are those of everything declared or remembered, sorted.
func allAddresses(doc *state.Document, desired *schema.Desired) []schema.Address {
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
	}
	return slices.SortedFunc(maps.Keys(set), schema.Address.Compare)
}

func known(addr schema.Address, doc *state.Document, desired *schema.Desired) bool {
	return slices.Contains(allAddresses(doc, desired), addr)
}

// didYouMean is "; did you mean job.train?" or "; known are …", "" if there is
// nothing at all.
func didYouMean(s string, doc *state.Document, desired *schema.Desired) string {
	var names []string
	for _, a := range allAddresses(doc, desired) {
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

// shellWord quotes a word for a POSIX shell where it needs that.
func shellWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`[](){}*?!&|;<>~#") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
