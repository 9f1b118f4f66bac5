package store

import (
	"os"
	"os/exec"
	"testing"
)

func TestGoneIsProvedOnly(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead := newLease(LeaseConfig{})
	dead.PID = ended.Process.Pid
	change := func(change func(l *Lease)) Lease {
		l := dead
		change(&l)
		return l
	}
	tests := []struct {
		name  string
		lease Lease
		want  bool
	}{
		{"a process that has ended", dead, true},
		{"a process that lives", change(func(l *Lease) { l.PID = os.Getpid() }), false},
		{"a process of another user, or one that reuses the number", change(func(l *Lease) { l.PID = 1 }), false},
		{"in another container", change(func(l *Lease) { l.PIDNamespace = "pid:[1]" }), false},
		{"by an older fray, which did not say", change(func(l *Lease) { l.PIDNamespace = "" }), false},
		{"on another host", change(func(l *Lease) { l.Host = "elsewhere" }), false},
		{"before the last boot", change(func(l *Lease) { l.BootID = "before" }), false},
		{"no process", change(func(l *Lease) { l.PID = 0 }), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.lease.Gone(); got != test.want {
				t.Errorf("got gone %v, want %v", got, test.want)
			}
		})
	}
}
