package schema

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
`, Options{})
	want := []Namespace{
		{Addr: Address{Kind: KindNamespace, Name: "plain"}},
		{
			Addr: Address{Kind: KindNamespace, Name: "rl"}, MaxChips: 64, MaxCPU: 8.5, Budget: 32, Weight: 2,
			IdleTimeout: Duration(5 * time.Minute),
			Users:       []UserShare{{Name: "ann", MaxCPU: 2, Budget: 8, Weight: 0.5}, {Name: "zoe@example.com", MaxChips: 16}},
		},
	}
	if diff := cmp.Diff(want, c.Desired.Namespaces, cmp.Comparer(func(a, b Address) bool { return a == b })); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}
