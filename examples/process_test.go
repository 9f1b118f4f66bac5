package examples

import (
	"fmt"
	"strings"
)

// process is one running process of this machine.
type process struct {
	pid    int
	parent int
	args   []string
	env    []string
}

func (p process) String() string { return fmt.Sprintf("%d: %s", p.pid, strings.Join(p.args, " ")) }
