package plan

import (
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

func TestUnheard(t *testing.T) {
	report := func(host, pid int) Host { return Host{HostReport: store.HostReport{Host: host, PID: pid}} }
	for _, test := range []struct {
		name   string
		agents []int
		hosts  []Host
		want   int
	}{
		{"the same processes", []int{7, 8}, []Host{report(0, 7), report(1, 8)}, -1},
		{"another process", []int{7, 9}, []Host{report(0, 7), report(1, 8)}, 1},
		{"one that is being started", []int{-1, 8}, []Host{report(0, 7), report(1, 8)}, 0},
		{"one that is down", []int{0, 8}, []Host{report(0, 7), report(1, 8)}, -1},
		{"processes that nothing sees", nil, []Host{report(0, 7)}, -1},
		{"a claim without a process", []int{7}, []Host{report(0, 0)}, -1},
		{"no report yet", []int{7, 8}, []Host{report(1, 8)}, -1},
	} {
		if got := unheard(&schema.SliceStatus{Agents: test.agents}, test.hosts); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
