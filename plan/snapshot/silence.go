package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

const (
	// HostTimeout is how long a host may be silent before it counts as lost.
	// Agents report every 2 s, so this many readings in a row were missed.
	HostTimeout = 45 * time.Second
	// MassSilenceTimeout is the same while most hosts are silent: that they have all
	// died at once is less likely than a network that carries no reports.
	MassSilenceTimeout = 10 * time.Minute
	// massSilenceSlices is from how many silent slices on it may be a mass silence.
	massSilenceSlices = 3
)

// LostHost finds a host that has said nothing for so long that it is lost, and
// with it its whole slice. One that its provider knows to be down, and so can
// start again, is given that chance for as long once more.
func (d *Evidence) LostHost(st *schema.SliceStatus) state.Termination {
	if st.Spec.On != "" { // only its host's reports are heartbeats
		host, listed := d.Listed[st.Spec.On]
		if !listed {
			return state.Termination{}
		}
		st = host
	}
	hosts := d.Obs.Hosts[st.Spec.Name]
	for i := range hosts {
		if hosts[i].Lives() {
			continue
		}
		patience := HostTimeout
		switch {
		case len(st.Down) > 0 && slices.Contains(st.Down, hosts[i].Host):
			patience = 2 * HostTimeout
		case hosts[i].SilentFor(d.Obs.Monitored) >= HostTimeout && st.Spec.Zone != "" && d.isMassSilence():
			patience = MassSilenceTimeout
		}
		if hosts[i].SilentFor(d.Obs.Monitored) >= patience {
			text := fmt.Sprintf("host %d of slice %s has not reported for %s", hosts[i].Host, st.Spec.Name, patience)
			return state.Termination{Cause: state.CauseHostLost, Text: text}
		}
		d.WakeAt(d.Now.Add(patience - hosts[i].SilentFor(d.Obs.Monitored)))
	}
	return state.Termination{}
}

// isMassSilence reports whether most slices in the cloud that live in their provider's eyes
// have a silent host: the store may take no reports, or the network be down.
func (d *Evidence) isMassSilence() bool {
	if d.massSilence == nil {
		silent, all := 0, 0
		if d.Rest != nil {
			all = d.Rest.Zoned
		}
		for name, st := range d.Listed {
			hosts := d.Obs.Hosts[name]
			if st.Spec.Zone == "" || len(hosts) == 0 || st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting {
				continue
			}
			all++
			if slices.ContainsFunc(hosts, func(h plan.Host) bool { return h.SilentFor(d.Obs.Monitored) >= HostTimeout }) {
				silent++
			}
		}
		mass := silent >= massSilenceSlices && 2*silent > all
		d.massSilence = &mass
	}
	return *d.massSilence
}

// HostingSliceSilent reports whether no host of a slice, or of the slice that it is packed
// on, has reported for so long that it would count as lost.
func (d *Evidence) HostingSliceSilent(st *schema.SliceStatus) bool {
	if d.Obs.Unread[cmp.Or(st.Spec.On, st.Spec.Name)] {
		return false
	}
	for _, h := range d.Obs.Hosts[cmp.Or(st.Spec.On, st.Spec.Name)] {
		if h.Lives() {
			return false
		}
		if h.SilentFor(d.Obs.Monitored) < HostTimeout {
			d.WakeAt(d.Now.Add(HostTimeout - h.SilentFor(d.Obs.Monitored)))
			return false
		}
	}
	return true
}
