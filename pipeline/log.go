package pipeline

import (
	"crypto/rand"
	"fmt"

	"github.com/fray-ml/fray/terminal"
)

// quiet has the runner take the log of a job as text from now on, until loud is called: names
// and values that begin like commands of the runner are then none. Both streams become one,
// since the runner reads two at once in no order. Where a runner has no such commands it changes nothing.
func quiet(a *terminal.Terminal, commands bool) (loud func()) {
	if !commands {
		return func() {}
	}
	errors := a.Stderr
	a.Stderr = a.Stdout
	word := rand.Text()
	fmt.Fprintf(a.Stdout, "::stop-commands::%s\n", word)
	return func() {
		fmt.Fprintf(a.Stdout, "\n::%s::\n", word)
		a.Stderr = errors
	}
}
