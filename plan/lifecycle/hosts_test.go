package lifecycle

import "testing"

func TestHostsAreNamedAsInASentence(t *testing.T) {
	for want, hosts := range map[string][]int{"host 3": {3}, "hosts 1 and 2": {1, 2}, "hosts 0, 2 and 5": {0, 2, 5}} {
		if got := hostList(hosts); got != want {
			t.Errorf("%v: got %q, want %q", hosts, got, want)
		}
	}
}
