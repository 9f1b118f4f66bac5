package snapshot

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Evidence adds how far the readings of a Draft can be believed: which slices
// a list speaks against, which hosts are silent, which packed slices are served.
type Evidence struct {
	*Draft

	massSilence      *bool                     // see isMassSilence
	Doubted          map[string]plan.DoubtKind // slices that may be there, whatever the list states; see doubtReadings
	ReadDirectly     map[string]bool           // slices of which a direct read reports whether they are there
	UnrecordedPacked []schema.SliceSpec        // packed slices that are assigned to hosts and not recorded
	seenPlacements   *placements               // made when first asked for
	doubtNames       map[string]bool           // the slices of the first doubts of the plan, see HasDoubt
	doubtsSeen       int                       // how many those are
}

// Host returns the report of host n of a slice, nil where there is none.
func (d *Evidence) Host(slice string, n int) *plan.Host {
	hosts := d.Obs.Hosts[slice]
	if n < len(hosts) && hosts[n].Host == n {
		return &hosts[n]
	}
	for i := range hosts {
		if hosts[i].Host == n {
			return &hosts[i]
		}
	}
	return nil
}

// Known reports whether a slice was read directly, or else would be listed if it were
// there and no list speaks against it without a confirmation: only then does one that is
// not listed not exist.
func (d *Evidence) Known(spec *schema.SliceSpec) bool {
	if host := d.Next.Slices[spec.On]; host != nil {
		spec = &host.Spec
	}
	if d.ReadDirectly[spec.Name] {
		return true
	}
	if d.isUnconfirmed(spec) {
		return false
	}
	return d.ListedIn(spec.Provider, spec.Zone)
}

// ForgetUnmanaged drops unmanaged slices once they are gone: listed no
// more, and not about to be either.
func (d *Evidence) ForgetUnmanaged() {
	if len(d.Doc.Unmanaged) == 0 {
		return
	}
	listed := make(map[string]bool, len(d.Unmanaged))
	for _, st := range d.Unmanaged {
		listed[st.Spec.Name] = true
	}
	for name, s := range d.Doc.Unmanaged {
		if !listed[name] && d.Known(&s.Spec) && d.Now.Sub(s.At) >= plan.BootTimeout {
			delete(d.Mutable().Unmanaged, name)
		}
	}
}

// ListedIn reports whether what is in a zone of a provider was listed: only then
// does a slice that is not listed not exist.
func (d *Evidence) ListedIn(p schema.ProviderName, zone string) bool {
	inv, ok := d.Obs.Inventories[p]
	if !ok {
		return false
	}
	if zone == "" {
		return len(inv.Unlisted) == 0
	}
	_, missing := inv.Unlisted[zone]
	return !missing
}
