package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc"
)

// Of what streams ask for at most.
const (
	shortStream, longStream = 40, 3000      // items
	largeItem               = 40_000        // bytes of an item, so that connections are cut within them
	slowItem, slowTake      = 2_000, 20_000 // microseconds in which one is made, and taken
)

// asked is what a stream is to be.
type asked struct {
	actor   int // index
	seq     int
	items   int
	padding int // bytes
	takes   int // microseconds for an item
	fails   bool
	leave   int // after how many items the loop is left; negative: never
	pause   time.Duration
	between bool // each item leads to another call
	options actorrpc.RPCOptions
}

// ask draws a stream.
func (c *caller) ask(actor int) asked {
	c.seq++
	a := asked{actor: actor, seq: c.seq, items: c.random.IntN(shortStream), leave: -1}
	a.options = actorrpc.RPCOptions{Timeout: ordinaryTimeout, StreamWindow: []int{0, 1, 3, 20}[c.random.IntN(4)]}
	switch c.random.IntN(6) {
	case 0:
		a.padding = c.random.IntN(largeItem)
	case 1:
		a.takes = c.random.IntN(slowItem)
	case 2:
		a.items = c.random.IntN(longStream)
	case 3:
		a.pause = time.Duration(c.random.IntN(slowTake)) * time.Microsecond
	case 4:
		a.between = true
	}
	switch c.random.IntN(6) {
	case 0:
		a.options.Timeout = c.short()
	case 1, 2:
		a.leave = c.random.IntN(a.items + 1)
	case 3:
		a.options.Retries, a.options.RetryErrors = 1+c.random.IntN(3), &actorrpc.ErrorFilter{}
		a.fails = c.random.IntN(2) == 0
		a.items /= 1 + 20*c.random.IntN(2) // it runs again only where no item came
	}
	return a
}

// stream has an actor make one.
func (c *caller) stream(actor int) { c.follow(c.ask(actor)) }

// streams has each actor make one, all at the same time.
func (c *caller) streams() {
	var all sync.WaitGroup
	for actor := range c.handles {
		a := c.ask(actor)
		a.between = false
		all.Go(func() { c.follow(a) })
	}
	all.Wait()
}

// follow loops over a stream, and writes each item that comes and what became of it.
func (c *caller) follow(a asked) {
	o := outcome{caller: c.name, seq: a.seq, kind: outcomeOK, code: "-", life: "-", timeout: a.options.Timeout, retries: a.options.Retries, items: a.items, window: a.options.StreamWindow}
	began := time.Now()
	defer func() {
		o.took = time.Since(began)
		_, _ = c.outcomes.WriteString(o.line())
	}()
	if a.leave == 0 { // before anything has come: it may be made all the same
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for _, err := range actorrpc.Stream[string](ctx, c.handles[a.actor], "numbers", c.name, a.seq, a.items, a.padding, a.takes, a.fails, a.options) {
			if err == nil {
				o.kind = outcomeOther
				return
			}
		}
		o.kind = outcomeLeft
		return
	}
	taken := 0
	for text, err := range actorrpc.Stream[string](context.Background(), c.handles[a.actor], "numbers", c.name, a.seq, a.items, a.padding, a.takes, a.fails, a.options) {
		if err != nil {
			o.failed(err)
			return
		}
		one := item{caller: c.name, seq: a.seq}
		if _, err := fmt.Sscan(text, &one.life, &one.count, &one.number); err != nil {
			o.kind = outcomeOther
			return
		}
		o.life, o.count = one.life, one.count
		_, _ = c.received.WriteString(one.line())
		if taken++; taken == a.leave {
			o.kind = outcomeLeft
			return
		}
		c.meanwhile(a, taken)
	}
}

// meanwhile is what a loop does with an item.
func (c *caller) meanwhile(a asked, taken int) {
	<-time.After(a.pause)
	// Never to an actor before this one: two loops would wait for each other's.
	if later := len(c.handles) - 1 - a.actor; a.between && later > 0 && taken%8 == 0 {
		c.single(c.handles[a.actor+1+c.random.IntN(later)], nil, ordinaryTimeout)
	}
}
