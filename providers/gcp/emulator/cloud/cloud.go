package cloud

import (
	"net/netip"
	"sync"
	"time"
)

// Config is what a cloud is made of.
type Config struct {
	Scenario Scenario
	Clock    Clock // nil: the real one
	Hosts    Hosts // nil: nothing runs
	// Subnet is where internal addresses are taken from; zero: 10.128.0.0/9.
	Subnet netip.Prefix
	// Project is what a server takes where nothing else says; "": "emulated".
	Project string
}

// Cloud is the model. It is safe for concurrent use.
type Cloud struct {
	config  Config
	clock   Clock
	rules   *rules
	start   time.Time
	subnet  netip.Prefix
	effects effects

	mu         sync.Mutex
	called     map[string]uint64 // calls so far, by method and resource
	abated     bool              // see Abate
	ids        int64
	addresses  uint64
	made       map[Key]uint64 // groups of that name so far
	groups     index[*group]
	requests   index[*request]
	operations operations
	pools      map[poolKey]*pool
	quotas     map[quotaKey]int // units held
	minutes    map[string][]time.Time
	stockouts  []window
	outages    []window
	listFaults []*listFault
	waiting    []*request // in order of arrival
	machines   map[string]machineRef
	freed      bool // something that waits may fit now
}

// machineRef finds a machine by its ID.
type machineRef struct {
	group  *group
	worker int
}

// New makes a cloud and starts what its scenario scripts.
func New(config Config) *Cloud {
	if config.Clock == nil {
		config.Clock = Real()
	}
	if !config.Subnet.IsValid() {
		config.Subnet = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128, 0, 0}), 9)
	}
	if config.Project == "" {
		config.Project = config.Scenario.Project
	}
	if config.Project == "" {
		config.Project = "emulated"
	}
	c := &Cloud{
		config: config, clock: config.Clock, rules: newRules(config.Scenario), start: config.Clock.Now(), subnet: config.Subnet,
		called:   map[string]uint64{},
		made:     map[Key]uint64{},
		groups:   newIndex[*group](),
		requests: newIndex[*request](),
		pools:    map[poolKey]*pool{}, quotas: map[quotaKey]int{}, minutes: map[string][]time.Time{},
		machines: map[string]machineRef{},
	}
	c.operations.byName = map[string]*operation{}
	c.do(c.script)
	return c
}

// Clock is the clock that everything runs on.
func (c *Cloud) Clock() Clock { return c.clock }

// Project is the project to take where nothing else says.
func (c *Cloud) Project() string { return c.config.Project }

// do runs f with the model locked, then what f wants done outside of the lock.
func (c *Cloud) do(f func()) {
	c.mu.Lock()
	f()
	for c.freed {
		c.freed = false
		c.serve()
	}
	c.mu.Unlock()
	c.effects.run()
}

// effects are calls into other people's code, made in order, one at a time and
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

// next takes the next call, nil if there is none or somebody else runs them.
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
func (c *Cloud) host(call func(Hosts)) {
	if h := c.config.Hosts; h != nil {
		c.effects.add(func() { call(h) })
	}
}
