package controller

import (
	"net"
	"slices"
	"testing"
)

// TestAddressesOfInterfaces: an address that was configured on the loopback
// interface, which comes first, is not what others reach this machine by, as long
// as there is another.
func TestAddressesOfInterfaces(t *testing.T) {
	t.Parallel()
	lo := net.Interface{Name: "lo", Flags: net.FlagUp | net.FlagLoopback}
	wired := net.Interface{Name: "wired", Flags: net.FlagUp | net.FlagBroadcast | net.FlagRunning}
	bridge := net.Interface{Name: "bridge", Flags: net.FlagUp | net.FlagBroadcast}
	unplugged := net.Interface{Name: "unplugged", Flags: net.FlagBroadcast}
	for _, test := range []struct {
		name string
		has  []net.Interface
		want []string
	}{
		{"the loopback interface comes last", []net.Interface{lo, wired, bridge}, []string{"wired", "bridge", "lo"}},
		{"what is down does not count", []net.Interface{lo, unplugged, wired}, []string{"wired", "lo"}},
		{"there is no other", []net.Interface{lo}, []string{"lo"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, each := range byReach(test.has) {
				got = append(got, each.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("looked at %q, want %q", got, test.want)
			}
		})
	}
}
