package cloud

import (
	"cmp"
	"net/netip"
	"time"
)

// Config is what a cloud is made of.
type Config struct {
	Scenario Scenario
	Clock    Clock // nil: the real one
	Hosts    Hosts // nil: nothing runs
	// Subnet is where internal addresses are taken from; zero: 10.128.0.0/9.
	Subnet netip.Prefix
	// Project is what a server takes where nothing else states one; "": "emulated".
	Project string
}

// Cloud is the model. It is safe for concurrent use. Each of its parts holds one
// idea and uses only those before it.
type Cloud struct {
	*runner
	*rules
	*accounts
	*operations
	*admission
	*lifecycle
	*groups
	*queue
	project string
}

// New makes a cloud and starts what its scenario scripts.
func New(config Config) *Cloud {
	if config.Clock == nil {
		config.Clock = Real()
	}
	if !config.Subnet.IsValid() {
		config.Subnet = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128, 0, 0}), 9)
	}
	run := &runner{clock: config.Clock, start: config.Clock.Now(), hosts: config.Hosts}
	rules := newRules(config.Scenario)
	accounts := &accounts{runner: run, rules: rules, pools: map[poolKey]*pool{}, quotas: map[quotaKey]int{}, stockouts: map[string][]window{}}
	operations := &operations{runner: run, byName: map[string]*operation{}}
	life := &lifecycle{
		runner: run, rules: rules, accounts: accounts, operations: operations, subnet: config.Subnet,
		made: map[Key]uint64{}, live: newIndex[*group](), machines: map[string]machineRef{},
	}
	queue := &queue{lifecycle: life, queued: newIndex[*request]()}
	run.onFreed = queue.serve
	c := &Cloud{
		runner: run, rules: rules, accounts: accounts, operations: operations, lifecycle: life, groups: &groups{life}, queue: queue,
		admission: &admission{runner: run, rules: rules, called: map[string]uint64{}, minutes: map[string][]time.Time{}},
		project:   cmp.Or(config.Project, config.Scenario.Project, "emulated"),
	}
	c.do(c.script)
	return c
}

// Project is the project to take where nothing else states one.
func (c *Cloud) Project() string { return c.project }
