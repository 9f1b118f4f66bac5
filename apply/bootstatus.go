package apply

import (
	"maps"
	"slices"
	"strconv"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// bootStatuses are what machines state in the store of how far they have come, by slice
// and by the last part of the object's key. See [store.BootKey].
type bootStatuses map[string]map[string]string

// slices are those with any.
func (b bootStatuses) slices() map[string]bool {
	names := make(map[string]bool, len(b))
	for name := range b {
		names[name] = true
	}
	return names
}

// of are the statuses of those of a slice's hosts that are missing, and of machines
// without a number.
func (b bootStatuses) of(spec *schema.SliceSpec, missing []int) []providers.HostReport {
	var reports []providers.HostReport
	for _, machine := range slices.Sorted(maps.Keys(b[spec.Name])) {
		r := providers.HostReport{Machine: machine, Status: b[spec.Name][machine]}
		number, err := strconv.Atoi(machine)
		if err == nil || spec.Hosts == 1 {
			r.Host, r.Machine = number, ""
		}
		if r.Machine != "" || slices.Contains(missing, r.Host) {
			reports = append(reports, r)
		}
	}
	return reports
}

// complete adds to the reports at the provider those in the store of other hosts: a machine
// writes its guest attribute first, so that this is never the older one.
func complete(reports, stored []providers.HostReport) []providers.HostReport {
	all := slices.Clone(reports)
	for _, r := range stored {
		if !slices.ContainsFunc(reports, func(other providers.HostReport) bool { return other.Host == r.Host && other.Machine == r.Machine }) {
			all = append(all, r)
		}
	}
	return all
}

// boot takes in what a machine of a slice states; "": nothing any more.
func (w *mailWriter) boot(slice, machine, status string) {
	if w.ownBoot == nil {
		w.o.booting, w.ownBoot = maps.Clone(w.o.booting), map[string]bool{}
	}
	if w.o.booting == nil {
		w.o.booting = bootStatuses{}
	}
	if !w.ownBoot[slice] {
		w.o.booting[slice], w.ownBoot[slice] = maps.Clone(w.o.booting[slice]), true
	}
	if status == "" {
		delete(w.o.booting[slice], machine)
	} else {
		if w.o.booting[slice] == nil {
			w.o.booting[slice] = map[string]string{}
		}
		w.o.booting[slice][machine] = status
	}
	if len(w.o.booting[slice]) == 0 {
		delete(w.o.booting, slice)
	}
}
