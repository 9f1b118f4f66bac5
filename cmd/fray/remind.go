package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
)

const (
	// remindEvery is how often an apply without a terminal says what it waits for:
	// a log that says nothing for minutes reads as one that hangs.
	remindEvery = 30 * time.Second
	// remindedOf is how many are named.
	remindedOf = 20
)

// remind says every 30 seconds what is still waited for, each with its reasons.
// A terminal has a line that says so all the time.
func (p *progress) remind(waits []plan.Pending) {
	now := p.now()
	if p.began.IsZero() {
		p.began, p.reminded = now, now
	}
	if p.live || len(waits) == 0 || now.Sub(p.reminded) < remindEvery {
		return
	}
	p.reminded = now
	p.line("%s", reminder(waits, now.Sub(p.began)))
}

// reminder names what is waited for.
func reminder(waits []plan.Pending, since time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "After %s, still waiting for %d:\n", since.Truncate(time.Second), len(waits))
	b.WriteString(reasonLines(waits[:min(len(waits), remindedOf)]))
	if n := len(waits) - remindedOf; n > 0 {
		fmt.Fprintf(&b, "  and %d more\n", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
