package activity

import (
	"strconv"
	"strings"
	"time"
)

// chooser is who chooses the tokens of its activities itself, so that a start or an end can be repeated after a lost
// answer: "NAME-NUMBER", of one NAME with numbers that grow.
type chooser struct{ module, name string }

// choices are the tokens of one chooser.
type choices struct {
	name string
	next int64           // numbers below were chosen before the last heartbeat
	over map[string]bool // those that have ended and that a heartbeat on its way may list
}

func cutToken(token string) (name string, number int64) {
	at := strings.LastIndexByte(token, '-')
	number, err := strconv.ParseInt(token[at+1:], 10, 64)
	if at < 0 || err != nil {
		return token, 0
	}
	return token[:at], number
}

// StartAs begins an activity under a token that its process has chosen. Again, or after its process has given it up, it
// changes nothing.
func (t *Tracker) StartAs(now time.Time, token, module, work, incarnation string) {
	c := t.choicesOf(module, token)
	if _, open := t.work[token]; open || c.over[token] || c.isBefore(token) {
		return
	}
	t.begin(now, Activity{Token: token, Module: module, Work: work, Incarnation: incarnation, Since: now})
}

// choicesOf are the choices of a token's chooser.
func (t *Tracker) choicesOf(module, token string) *choices {
	name, _ := cutToken(token)
	key := chooser{module: module, name: name}
	if t.chosen[key] == nil {
		t.chosen[key] = &choices{name: name, over: map[string]bool{}}
	}
	return t.chosen[key]
}

// ended notes that an activity has ended, if a heartbeat on its way may list it.
func (t *Tracker) ended(a Activity) {
	name, _ := cutToken(a.Token)
	if c := t.chosen[chooser{module: a.Module, name: name}]; c != nil && t.beats(a.Module) {
		c.over[a.Token] = true
	}
}

// advance notes the token that comes next, and reports whether none after it was known.
func (c *choices) advance(next string) bool {
	_, number := cutToken(next)
	if number < c.next {
		return false
	}
	c.next = number
	return true
}

// isBefore reports whether a token was chosen before the last heartbeat.
func (c *choices) isBefore(token string) bool {
	name, number := cutToken(token)
	return name == c.name && number < c.next
}
