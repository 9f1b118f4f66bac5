package change

import (
	"strings"

	"github.com/fray-ml/fray/schema"
)

// cloudAttrs flattens what slices on Google Cloud are asked for, in the order of
// the language reference.
func (l *attrList) cloudAttrs(prefix string, c *schema.CloudSpec) {
	l.add(prefix+"engine", c.Engine, c.Engine == "")
	l.add(prefix+"provisioning", c.Provisioning, c.Provisioning == "")
	l.add(prefix+"valid_until", c.ValidUntil, c.ValidUntil == 0)
	l.add(prefix+"max_run", c.MaxRun, c.MaxRun == 0)
	l.add(prefix+"reserved_in", c.ReservedIn, c.ReservedIn == "")
	l.add(prefix+"runtime_version", c.RuntimeVersion, c.RuntimeVersion == "")
	l.add(prefix+"disks", strings.Split(c.Disks, ","), c.Disks == "")
	l.add(prefix+"network", c.Network, c.Network == "")
	l.add(prefix+"subnetwork", c.Subnetwork, c.Subnetwork == "")
	l.add(prefix+"service_account", c.ServiceAccount, c.ServiceAccount == "")
	l.add(prefix+"boot_image", c.Image, c.Image == "")
	l.add(prefix+"tags", c.Live.TagList(), c.Live.Tags == "")
	l.add(prefix+"external_ips", false, !c.Live.InternalIPs)
	l.add(prefix+"labels", c.Live.LabelMap(), c.Live.Labels == "")
}

// isLive reports whether an attribute is one that slices are given in place.
func isLive(path string) bool {
	switch strings.TrimPrefix(path, "resources.") {
	case "tags", "external_ips", "labels":
		return true
	}
	return false
}

// cloudAttributes are the same as what ignore_changes may name.
func cloudAttributes[T any](prefix string, of func(*T) *schema.CloudSpec) []attribute[T] {
	return []attribute[T]{
		field(prefix+"engine", func(v *T) *schema.Engine { return &of(v).Engine }),
		field(prefix+"provisioning", func(v *T) *schema.Provisioning { return &of(v).Provisioning }),
		field(prefix+"valid_until", func(v *T) *schema.Duration { return &of(v).ValidUntil }),
		field(prefix+"max_run", func(v *T) *schema.Duration { return &of(v).MaxRun }),
		field(prefix+"reserved_in", func(v *T) *string { return &of(v).ReservedIn }),
		field(prefix+"runtime_version", func(v *T) *string { return &of(v).RuntimeVersion }),
		field(prefix+"disks", func(v *T) *string { return &of(v).Disks }),
		field(prefix+"network", func(v *T) *string { return &of(v).Network }),
		field(prefix+"subnetwork", func(v *T) *string { return &of(v).Subnetwork }),
		field(prefix+"service_account", func(v *T) *string { return &of(v).ServiceAccount }),
		field(prefix+"boot_image", func(v *T) *string { return &of(v).Image }),
		field(prefix+"tags", func(v *T) *string { return &of(v).Live.Tags }),
		field(prefix+"external_ips", func(v *T) *bool { return &of(v).Live.InternalIPs }),
		field(prefix+"labels", func(v *T) *string { return &of(v).Live.Labels }),
	}
}
