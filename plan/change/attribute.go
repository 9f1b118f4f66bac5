package change

import (
	"maps"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// field is an attribute that is a field of its spec.
func field[T, V any](path string, at func(*T) *V) attribute[T] {
	return attribute[T]{path: path, keep: func(want, recorded *T, _ string) { *at(want) = *at(recorded) }}
}

// entries is an attribute that is a map.
func entries[T, V any](path string, at func(*T) *map[string]V) attribute[T] {
	return attribute[T]{path: path, keyed: true, keep: func(want, recorded *T, key string) {
		if key == "" {
			*at(want) = *at(recorded)
			return
		}
		kept := maps.Clone(*at(want))
		if value, there := (*at(recorded))[key]; !there {
			delete(kept, key)
		} else if kept == nil {
			kept = map[string]V{key: value}
		} else {
			kept[key] = value
		}
		*at(want) = kept
	}}
}

// inBlock is an attribute in a block that may be absent. Where one of the two has
// no such block, it is declared or removed whole, which only its own path ignores.
func inBlock[B, V any](path string, block func(*schema.Job) **B, at func(*B) *V) attribute[schema.Job] {
	return attribute[schema.Job]{path: path, keep: func(want, recorded *schema.Job, _ string) {
		to, from := block(want), block(recorded)
		if *to == nil || *from == nil {
			return
		}
		kept := **to
		*at(&kept) = *at(*from)
		*to = &kept
	}}
}

// reservationAttributes are in the order of the language reference.
func reservationAttributes() []attribute[schema.Reservation] {
	type pool = schema.Reservation
	list := []attribute[pool]{field("provider", func(r *pool) *schema.ProviderName { return &r.Provider })}
	for _, end := range []struct {
		name string
		of   func(*pool) *schema.Capacity
	}{
		{"min", func(r *pool) *schema.Capacity { return &r.Min }},
		{"max", func(r *pool) *schema.Capacity { return &r.Max }},
	} {
		list = append(list,
			field(end.name+".tpu", func(r *pool) *string { return &end.of(r).TPU }),
			field(end.name+".gpu.type", func(r *pool) *string { return &end.of(r).GPU.Type }),
			field(end.name+".gpu.count", func(r *pool) *int { return &end.of(r).GPU.Count }),
			field(end.name+".cpu", func(r *pool) *float64 { return &end.of(r).CPU }),
			field(end.name+".memory", func(r *pool) *schema.Bytes { return &end.of(r).Memory }),
			field(end.name+".disk", func(r *pool) *schema.Bytes { return &end.of(r).Disk }),
			field(end.name+".slices", func(r *pool) *int { return &end.of(r).Slices }),
		)
	}
	list = append(list,
		field("priority", func(r *pool) *int { return &r.Priority }),
		field("ttl", func(r *pool) *schema.Duration { return &r.TTL }),
		field("idle_timeout", func(r *pool) *schema.Duration { return &r.IdleTimeout }),
		field("growth", func(r *pool) *schema.Growth { return &r.Growth }),
		field("namespace", func(r *pool) *string { return &r.Namespace }),
		field("preemptible", func(r *pool) *bool { return &r.Preemptible }),
		field("zones", func(r *pool) *[]string { return &r.Zones }),
		field("regions", func(r *pool) *[]string { return &r.Regions }),
	)
	return append(list, cloudAttributes("", func(r *pool) *schema.CloudSpec { return &r.Cloud })...)
}

// SameSpec reports whether a job is as it was carried out: the same value, or
// one that reads otherwise but has the same digest. Digests of different
// versions are never equal, so that the attributes decide.
func SameSpec(want *schema.Job, cur *state.Job) bool {
	if cur.Spec == want || schema.EqualJobs(cur.Spec, want) {
		return true
	}
	digest, err := schema.DigestOf(want)
	return err == nil && digest == cur.Digest
}
