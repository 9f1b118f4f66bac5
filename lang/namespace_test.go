package lang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

func TestNamespaceShares(t *testing.T) {
	c := mustEvaluate(t, `
namespace "rl" {
  max_chips    = 64
  max_cpu      = 8.5
  budget       = 32
  weight       = 2
  idle_timeout = "5m"

  user "zoe@example.com" {
    max_chips = 16
  }
  user "ann" {
    max_cpu = 2
    budget  = 8
    weight  = 0.5
  }
}
namespace "plain" {}
`, eval.Options{})
	want := []schema.Namespace{
		{Addr: schema.Address{Kind: schema.KindNamespace, Name: "plain"}},
		{
			Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}, MaxChips: 64, MaxCPU: 8.5, Budget: 32, Weight: 2,
			IdleTimeout: schema.Duration(5 * time.Minute),
			Users:       []schema.UserShare{{Name: "ann", MaxCPU: 2, Budget: 8, Weight: 0.5}, {Name: "zoe@example.com", MaxChips: 16}},
		},
	}
	if diff := cmp.Diff(want, c.Desired.Namespaces, cmp.Comparer(func(a, b schema.Address) bool { return a == b })); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}
