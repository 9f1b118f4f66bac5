package activity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Config configures a Tracker.
type Config struct {
	// Instance begins every token, so that a token of a former tracker is known to none of this one's.
	Instance string
	// TTL is after how long without a heartbeat a process that has sent one counts as dead; 0: 30 s.
	TTL time.Duration
	// MaxErrors is how many errors are kept; 0: 1000. The oldest go first.
	MaxErrors int
}

// DefaultTTL is Config.TTL where it is 0.
const DefaultTTL = 30 * time.Second

// Module is what takes part in a run.
type Module struct {
	Name        string    `json:"name"`
	Address     string    `json:"address,omitempty"`
	Rollout     bool      `json:"is_rollout_worker,omitempty"`
	Incarnation string    `json:"incarnation,omitempty"` // of the process that was heard of last
	Heard       time.Time `json:"heard,omitzero"`        // the last heartbeat of it; zero: none
	// Unsettled is that the tracker was restarted and has not heard of the module since: what it does is not known.
	Unsettled bool `json:"unsettled,omitempty"`
}

// Activity is work that has begun and not ended.
type Activity struct {
	Token       string    `json:"token"`
	Module      string    `json:"module"`
	Work        string    `json:"work"`
	Incarnation string    `json:"incarnation,omitempty"`
	Since       time.Time `json:"since"`
}

// Tracker knows what goes on in a run. It is not safe for concurrent use.
type Tracker struct {
	cfg      Config
	next     int64
	modules  map[string]*Module
	work     map[string]Activity
	dead     map[string]bool // module and incarnation
	chosen   map[chooser]*choices
	step     int64
	restored time.Time // zero: it was not
	Errors   *Errors
}

// New returns a tracker that knows no module.
func New(cfg Config) *Tracker {
	cfg.TTL = cmp.Or(cfg.TTL, DefaultTTL)
	return &Tracker{
		cfg: cfg, modules: map[string]*Module{}, work: map[string]Activity{}, dead: map[string]bool{}, chosen: map[chooser]*choices{}, Errors: NewErrors(cfg.Instance, cfg.MaxErrors),
	}
}

// Register makes a module known. Registered again it keeps its activities.
func (t *Tracker) Register(name, address string, rollout bool) {
	m := t.module(name)
	m.Address, m.Rollout = cmp.Or(address, m.Address), rollout || m.Rollout
}

func (t *Tracker) module(name string) *Module {
	if t.modules[name] == nil {
		t.modules[name] = &Module{Name: name}
	}
	return t.modules[name]
}

// Start begins an activity and returns its token, unique in the run. An incarnation "" is of a module that lives as
// long as the tracker. One that is known to be dead gets a token that has expired.
func (t *Tracker) Start(now time.Time, module, work, incarnation string) string {
	t.next++
	token := fmt.Sprintf("%s-%d", t.cfg.Instance, t.next)
	t.begin(now, Activity{Token: token, Module: module, Work: work, Incarnation: incarnation, Since: now})
	return token
}

func (t *Tracker) begin(now time.Time, a Activity) {
	if t.dead[process(a.Module, a.Incarnation)] {
		return
	}
	t.hear(now, a.Module, a.Incarnation)
	t.work[a.Token] = a
}

// End ends an activity, and reports whether it had not ended.
func (t *Tracker) End(token string) bool {
	a, open := t.work[token]
	delete(t.work, token)
	if open {
		t.ended(a)
	}
	return open
}

// Beat takes notice of a heartbeat of a process, with the activities that it has, by token: those of which the tracker does
// not know, since it was restarted, count again. nil: it lists none. Next is the token that the process will choose next:
// those that it has chosen before and does not list have ended. "": it chooses none.
func (t *Tracker) Beat(now time.Time, module, incarnation string, open map[string]string, next string) {
	if t.dead[process(module, incarnation)] {
		return
	}
	m := t.hear(now, module, incarnation)
	m.Heard = now
	c := t.choicesOf(module, next)
	if !c.advance(next) {
		return // a later heartbeat has overtaken this one
	}
	for token, a := range t.work {
		if _, listed := open[token]; !listed && a.Module == module && c.isBefore(token) {
			delete(t.work, token)
		}
	}
	for _, token := range slices.Sorted(maps.Keys(open)) {
		if _, known := t.work[token]; !known && !c.over[token] && !strings.HasPrefix(token, t.cfg.Instance+"-") {
			t.work[token] = Activity{Token: token, Module: module, Work: open[token], Incarnation: incarnation, Since: now}
		}
	}
	maps.DeleteFunc(c.over, func(token string, _ bool) bool { _, listed := open[token]; return !listed })
}

// hear notes which process a module has now; activities of a former one expire.
func (t *Tracker) hear(now time.Time, module, incarnation string) *Module {
	m := t.module(module)
	m.Unsettled = false
	if incarnation == "" || incarnation == m.Incarnation {
		return m
	}
	if m.Incarnation != "" {
		t.Dead(module, m.Incarnation)
	}
	m.Incarnation = incarnation
	if !m.Heard.IsZero() { // its processes send heartbeats: this one may die before its first
		m.Heard = now
	}
	return m
}

// beats reports whether a module has sent heartbeats.
func (t *Tracker) beats(module string) bool {
	m := t.modules[module]
	return m != nil && !m.Heard.IsZero()
}

// Process is the incarnation of a module that was heard of last, "" if none was.
func (t *Tracker) Process(module string) string {
	if m := t.modules[module]; m != nil {
		return m.Incarnation
	}
	return ""
}

// Dead takes notice that a process has ended: its activities expire. It returns how many had not ended.
func (t *Tracker) Dead(module, incarnation string) int {
	t.dead[process(module, incarnation)] = true
	if m := t.modules[module]; m != nil && m.Incarnation == incarnation {
		m.Unsettled = false
	}
	expired := 0
	for token, a := range t.work {
		if a.Module == module && a.Incarnation == incarnation {
			delete(t.work, token)
			expired++
		}
	}
	maps.DeleteFunc(t.chosen, func(c chooser, _ *choices) bool { return c.module == module })
	return expired
}

// Expire declares processes dead that have sent heartbeats and no longer do, and returns their modules, sorted.
func (t *Tracker) Expire(now time.Time) []string {
	var silent []string
	for _, name := range slices.Sorted(maps.Keys(t.modules)) {
		m := t.modules[name]
		if m.Unsettled && now.Sub(t.restored) >= t.cfg.TTL {
			m.Unsettled = false
		}
		if m.Incarnation != "" && !m.Heard.IsZero() && now.Sub(m.Heard) >= t.cfg.TTL && !t.dead[process(name, m.Incarnation)] {
			t.Dead(name, m.Incarnation)
			silent = append(silent, name)
		}
	}
	return silent
}

func process(module, incarnation string) string { return module + "\x00" + incarnation }

// Quiescent reports whether no activity is under way. After a restart of the tracker it is not until every module was
// heard of, or was silent for TTL.
func (t *Tracker) Quiescent() bool {
	return len(t.work) == 0 && !t.unsettled(func(*Module) bool { return true })
}

// RolloutQuiescent reports the same of registered rollout workers only. What they have leased is the loader's to know.
func (t *Tracker) RolloutQuiescent() bool {
	for _, a := range t.work {
		if m := t.modules[a.Module]; m != nil && m.Rollout {
			return false
		}
	}
	return !t.unsettled(func(m *Module) bool { return m.Rollout })
}

func (t *Tracker) unsettled(of func(*Module) bool) bool {
	for _, m := range t.modules {
		if m.Unsettled && of(m) {
			return true
		}
	}
	return false
}

// Running are the activities under way, the oldest first.
func (t *Tracker) Running() []Activity {
	return slices.SortedFunc(maps.Values(t.work), func(a, b Activity) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Token, b.Token))
	})
}

// Summary names module, work and age of each activity, one a line.
func (t *Tracker) Summary(now time.Time) string {
	running := t.Running()
	if len(running) == 0 {
		return "no activity is under way"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d under way:", len(running))
	for _, a := range running {
		fmt.Fprintf(&text, "\n  %s: %s, for %s", a.Module, a.Work, now.Sub(a.Since).Round(100*time.Millisecond))
	}
	return text.String()
}

// Modules are copies of the registered modules, by name, sorted.
func (t *Tracker) Modules() []Module {
	var modules []Module
	for _, name := range slices.Sorted(maps.Keys(t.modules)) {
		modules = append(modules, *t.modules[name])
	}
	return modules
}

// SetStep sets the training step.
func (t *Tracker) SetStep(step int64) { t.step = step }

// Step is the training step.
func (t *Tracker) Step() int64 { return t.step }

// State is what outlives a restart of a tracker: modules and step. Activities do not: processes list theirs with
// their heartbeats.
type State struct {
	Modules []Module `json:"modules"`
	Step    int64    `json:"step"`
}

// Snapshot is the state now.
func (t *Tracker) Snapshot() State { return State{Modules: t.Modules(), Step: t.step} }

// Restore sets the state that a former tracker had. Its modules count as working until they are heard of.
func (t *Tracker) Restore(now time.Time, s State) {
	t.restored, t.step = now, s.Step
	for _, m := range s.Modules {
		m.Unsettled = m.Incarnation != "" // others have never worked at anything
		if !m.Heard.IsZero() {
			m.Heard = now // while there was no tracker it could not send heartbeats
		}
		t.modules[m.Name] = &m
	}
}
