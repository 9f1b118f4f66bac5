package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

const (
	// remindEvery is how often an apply without a terminal says what it waits for:
	// a log that says nothing for minutes reads as one that hangs.
	remindEvery = 30 * time.Second
	// remindedOf is how many are named.
	remindedOf = 20
)

// Remind says every 30 seconds what is still waited for, each with its reasons.
// A terminal has a line that says so all the time.
func (p *Progress) Remind(waits []plan.Pending) {
	now := p.now()
	if p.began.IsZero() {
		p.began, p.reminded = now, now
	}
	if p.live || len(waits) == 0 || now.Sub(p.reminded) < remindEvery {
		return
	}
	p.reminded = now
	p.Line("%s", reminder(waits, now.Sub(p.began)))
}

// Upload tells that the program for the hosts is uploaded, and on a terminal how
// far it is.
func (p *Progress) Upload(to string, sent, size int64) {
	if sent == 0 {
		p.Line("uploading the agent (%s) to %s", schema.Bytes(size), to)
		return
	}
	if !p.live {
		return
	}
	p.clear()
	if sent < size {
		fmt.Fprintf(p.terminal.Stderr, "  uploading the agent: %d%%", 100*sent/size)
		p.lineUp = true
	}
}

// reminder names what is waited for.
func reminder(waits []plan.Pending, since time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "After %s, still waiting for %d:\n", since.Truncate(time.Second), len(waits))
	b.WriteString(ReasonLines(waits[:min(len(waits), remindedOf)]))
	if n := len(waits) - remindedOf; n > 0 {
		fmt.Fprintf(&b, "  and %d more\n", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
