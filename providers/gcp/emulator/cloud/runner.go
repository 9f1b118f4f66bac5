package cloud

import (
	"sync"
	"time"
)

// runner runs the model: it has its lock, its clock and the calls out of it.
type runner struct {
	clock   Clock
	start   time.Time
	hosts   Hosts // nil: no machine runs
	effects effects
	onFreed func() // gives what became free to what waits for it

	mu    sync.Mutex
	freed bool // capacity or quota became free
	news  News
}

// News counts what clients may see otherwise than before.
type News struct {
	Changes uint64 // of what is there and of how lists are answered; some change nothing that is shown
	Ended   uint64 // operations
}

// News is how much has happened so far.
func (c *runner) News() News {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news
}

// Clock is the clock that everything runs on.
func (c *runner) Clock() Clock { return c.clock }

// do runs f with the model locked, then what f wants done outside of the lock.
func (c *runner) do(f func()) {
	c.mu.Lock()
	c.news.Changes++
	f()
	for c.freed {
		c.freed = false
		c.onFreed()
	}
	c.mu.Unlock()
	c.effects.run()
}

// effects are calls out of the model, made in order, one at a time and
// without the model's lock. A call that leads to more of them returns first.
type effects struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

func (e *effects) add(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, f)
}

func (e *effects) run() {
	for f := e.next(false); f != nil; f = e.next(true) {
		f()
	}
}

// next takes the next call, nil if there is none or another goroutine runs them.
func (e *effects) next(mine bool) func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running && !mine {
		return nil
	}
	e.running = len(e.queue) > 0
	if !e.running {
		e.queue = nil
		return nil
	}
	f := e.queue[0]
	e.queue = e.queue[1:]
	return f
}

// host wants a call to the hosts made.
func (c *runner) host(call func(Hosts)) {
	if h := c.hosts; h != nil {
		c.effects.add(func() { call(h) })
	}
}

// timers are what is still to happen to a group or a request.
type timers struct {
	life  int // counts withdrawals: a timer of an earlier life does nothing
	stops []func()
}

// later has something happen unless it is withdrawn before.
func (c *runner) later(t *timers, after time.Duration, f func()) {
	if after <= 0 {
		f()
		return
	}
	life := t.life
	t.stops = append(t.stops, c.clock.AfterFunc(c.clock.Now().Add(after), func() {
		c.do(func() {
			if t.life == life {
				f()
			}
		})
	}))
}

// withdraw cancels what has not happened yet.
func (t *timers) withdraw() {
	t.life++
	for _, stop := range t.stops {
		stop()
	}
	t.stops = nil
}
