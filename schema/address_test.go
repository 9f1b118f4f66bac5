package schema_test

import (
	"testing"

	"github.com/fray-ml/fray/schema"
)

// TestScopedNames: a reservation's scoped name and its address name the same.
func TestScopedNames(t *testing.T) {
	for scoped, want := range map[string]string{
		"pool":                                   "reservation.pool",
		"job_group.g.pool":                       "job_group.g.reservation.pool",
		"module.a.pool":                          "module.a.reservation.pool",
		"module.job_group.pool":                  "module.job_group.reservation.pool",
		"module.a.module.job_group.pool":         "module.a.module.job_group.reservation.pool",
		`module.a["x.job_group.y"].pool`:         `module.a["x.job_group.y"].reservation.pool`,
		`module.a["x"].job_group.g.pool`:         `module.a["x"].job_group.g.reservation.pool`,
		"module.job_group.job_group.module.pool": "module.job_group.job_group.module.reservation.pool",
		"rl/flex-1.5b":                           "reservation.rl/flex-1.5b",
	} {
		addr := schema.ScopedAddress(schema.KindReservation, scoped)
		if addr.String() != want || addr.Scoped() != scoped {
			t.Errorf("%s: got %s, whose scoped name is %s, want %s", scoped, addr, addr.Scoped(), want)
		}
		if parsed, err := schema.ParseAddress(want); err != nil || parsed != addr {
			t.Errorf("ParseAddress(%s) = %#v, %v; want %#v", want, parsed, err, addr)
		}
	}
}

// TestMembersOfGroups: jobs, services and reservations stand in groups, nothing else.
func TestMembersOfGroups(t *testing.T) {
	group := schema.Address{Kind: schema.KindJobGroup, Name: "g"}
	for text, member := range map[string]bool{
		"job_group.g.job.a": true, "job_group.g.actor_service.a[1]": true, "job_group.g.reservation.a": true,
		"job_group.h.job.a": false, "actor_service.a": false,
	} {
		addr, err := schema.ParseAddress(text)
		if err != nil || group.Contains(addr) != member {
			t.Errorf("%s is in %s: %v (%v), want %v", text, group, group.Contains(addr), err, member)
		}
	}
	for _, text := range []string{"job_group.g.namespace.n", "job_group.g.job_group.h", "job_group.g[0].job.a"} {
		if addr, err := schema.ParseAddress(text); err == nil {
			t.Errorf("ParseAddress(%s) = %#v, want an error", text, addr)
		}
	}
}
