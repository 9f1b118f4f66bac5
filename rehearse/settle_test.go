package rehearse

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
)

// What cannot come to run is no mistake of fray: jobs on a reservation of the cloud that
// does not exist, of which only some ask, and jobs beyond the chips of their user.
func TestWhatCannotRunIsNoViolation(t *testing.T) {
	d := training(8, "v4-128", "us-central2-b")
	for i := range d.Jobs {
		r := &d.Jobs[i].Resources
		r.Cloud.Provisioning, r.Preemptible = schema.ProvisioningReserved, false
	}
	small := training(3, "v5litepod-8", "us-west4-a").Jobs
	for i := range small {
		small[i].Addr.Name, small[i].Namespace, small[i].User = "of-a-user", "research", "ann"
		small[i].Resources.Zones = []string{"us-west4-a"}
	}
	d.Jobs = append(d.Jobs, small...)
	d.Namespaces = []schema.Namespace{{
		Addr: schema.Address{Kind: schema.KindNamespace, Name: "research"}, Users: []schema.UserShare{{Name: "ann", MaxChips: 16}},
	}}
	rep, err := Run(t.Context(), Config{Desired: d, Scenario: builtIn(t, ScenarioUsual).Cloud, For: 6 * time.Hour, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range rep.Violations {
		t.Error(v)
	}
	ran := 0
	for _, j := range rep.Jobs {
		if j.Useful > 0 {
			ran++
		}
	}
	if ran != 2 {
		t.Errorf("%d jobs ran, want 2 of the user", ran)
	}
}
