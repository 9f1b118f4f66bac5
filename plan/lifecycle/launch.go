package lifecycle

import (
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
)

// isRemembered reports whether the record of something launched and released
// is kept although it is not wanted: a query for it is answered with what became of it.
func (d *Jobs) isRemembered(addr schema.Address) bool {
	l := d.Doc.Resources[addr].Launch
	return l != nil && !l.ReleasedAt.IsZero() && d.Now.Before(l.ReleasedAt.Add(launch.Retention))
}

// forgetGroups drops launched groups none of whose jobs is recorded any more.
func (d *Jobs) forgetGroups() {
	var groups map[schema.Address]bool
	for addr, r := range d.Doc.Resources {
		if r.Launch == nil || r.Group == nil {
			continue
		}
		if groups == nil {
			groups = map[schema.Address]bool{}
			for job := range d.Next.Jobs {
				groups[job.GroupAddress()] = true
			}
		}
		if !groups[addr] {
			delete(d.Mutable().Resources, addr)
		}
	}
}
