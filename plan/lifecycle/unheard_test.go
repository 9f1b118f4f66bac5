package lifecycle

import (
	"testing"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestUnheard(t *testing.T) {
	report := func(host, pid int) plan.Host { return plan.Host{HostReport: state.HostReport{Host: host, PID: pid}} }
	for _, test := range []struct {
		name   string
		agents []int
		hosts  []plan.Host
		want   int
	}{
		{"the same processes", []int{7, 8}, []plan.Host{report(0, 7), report(1, 8)}, -1},
		{"another process", []int{7, 9}, []plan.Host{report(0, 7), report(1, 8)}, 1},
		{"one that is being started", []int{-1, 8}, []plan.Host{report(0, 7), report(1, 8)}, 0},
		{"one that is down", []int{0, 8}, []plan.Host{report(0, 7), report(1, 8)}, -1},
		{"processes that nothing sees", nil, []plan.Host{report(0, 7)}, -1},
		{"a claim without a process", []int{7}, []plan.Host{report(0, 0)}, -1},
		{"no report yet", []int{7, 8}, []plan.Host{report(1, 8)}, -1},
	} {
		if got := Unheard(&schema.SliceStatus{Agents: test.agents}, test.hosts); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
