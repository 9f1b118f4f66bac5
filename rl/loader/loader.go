package loader

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/rl"
)

// Config is a loader's.
type Config struct {
	Length         int // items of the source
	BatchSize      int // items of a batch; 0: all
	Repeat         int // how often each item is given, as a group; 0: once. Validation data never repeat.
	Passes         int // over the data; 0: 1
	Shuffle        bool
	Seed           uint64
	KeepBatchOrder bool          // the next batch waits for Unlock
	DropLast       bool          // a last batch that is not full is left out
	Route          rl.Route      // "": train
	LeaseTTL       time.Duration // after which a lease that is not renewed ends; 0: 1 minute
	// Instance is in the IDs of leases: unique for each loader that does not continue another's state.
	Instance string
}

const defaultLeaseTTL = time.Minute

func (c Config) complete() (Config, error) {
	if c.Length < 0 || c.BatchSize < 0 || c.Repeat < 0 || c.Passes < 0 || c.LeaseTTL < 0 {
		return c, fmt.Errorf("%d items, batch_size %d, repeat %d, passes %d, lease_ttl %s: none may be negative", c.Length, c.BatchSize, c.Repeat, c.Passes, c.LeaseTTL)
	}
	if c.BatchSize == 0 || c.BatchSize > c.Length && !c.DropLast {
		c.BatchSize = max(c.Length, 1)
	}
	if c.Route == "" {
		c.Route = rl.RouteTrain
	}
	if c.Repeat == 0 || c.Route == rl.RouteValidate {
		c.Repeat = 1
	}
	if c.Passes == 0 {
		c.Passes = 1
	}
	if c.LeaseTTL == 0 {
		c.LeaseTTL = defaultLeaseTTL
	}
	if c.DropLast && c.BatchSize > c.Length {
		return c, fmt.Errorf("drop_last with batch_size %d leaves nothing of %d items: lower batch_size", c.BatchSize, c.Length)
	}
	return c, nil
}

// Entry is a task to be rolled out: item Index of the source, or one that was added.
type Entry struct {
	Pass  int `json:"pass"`
	Index int `json:"index"`
	Run   int `json:"run"` // 0 to Repeat-1
	// Added is the content of an item that was added, as its caller encodes it; Number counts these.
	Added  []byte `json:"added,omitempty"`
	Number int    `json:"number,omitempty"`
}

// TaskID is the same for the entry in every run.
func (e Entry) TaskID() string {
	if e.Added != nil {
		return fmt.Sprintf("added/%d/%d", e.Number, e.Run)
	}
	return rl.TaskID(e.Pass, e.Index, e.Run)
}

// GroupID is shared by the runs of one item.
func (e Entry) GroupID() string {
	if e.Added != nil {
		return fmt.Sprintf("added/%d", e.Number)
	}
	return fmt.Sprintf("%d/%d", e.Pass, e.Index)
}

// lease is the one of a worker.
type lease struct {
	Number      int64     `json:"number"`
	ID          string    `json:"id"`
	Worker      string    `json:"worker"`
	Incarnation string    `json:"incarnation"`
	Entry       Entry     `json:"entry"`
	Renewed     time.Time `json:"renewed"`
	Again       bool      `json:"again,omitempty"` // its trajectory is not used: the task comes next once it is done
}

// State is a loader as JSON can hold it.
type State struct {
	Length   int         `json:"length"`
	Seed     uint64      `json:"seed"`
	Instance string      `json:"instance"`
	Epoch    int         `json:"epoch"` // of the run
	Position rl.Position `json:"position"`
	Locked   bool        `json:"locked"`
	Started  bool        `json:"started"`
	Begun    bool        `json:"begun"`               // a task of the batch that was loaded last was leased
	Added    int         `json:"added"`               // how many items were
	AddedIDs []string    `json:"added_ids,omitempty"` // of late, as their callers name them
	Last     int64       `json:"last"`                // lease
	Buffer   []Entry     `json:"buffer"`
	Leases   []lease     `json:"leases"` // in the order in which they were given
	// Again is how far it is with the tasks that each pool has it give again, and Done the added ones that are done, of late.
	Again map[string]mark `json:"again,omitempty"`
	Done  []Entry         `json:"done,omitempty"`
}

// Loader gives each task to one worker at a time.
type Loader struct {
	cfg    Config
	state  State             // without the leases
	leases map[string]*lease // by ID
	// workers are the leases of each worker, in the order in which they were given: all of one incarnation.
	workers map[string][]*lease
	order   []int // of the source's items in pass; nil: not known
	pass    int
}

// New returns a loader at the beginning of its data.
func New(cfg Config) (*Loader, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("data loader: %w", err)
	}
	l := &Loader{cfg: cfg, leases: map[string]*lease{}, workers: map[string][]*lease{}}
	l.state = State{Length: cfg.Length, Seed: cfg.Seed, Instance: cfg.Instance}
	return l, nil
}

// batches is how many there are in a pass.
func (l *Loader) batches() int {
	if l.cfg.DropLast {
		return l.cfg.Length / l.cfg.BatchSize
	}
	return (l.cfg.Length + l.cfg.BatchSize - 1) / l.cfg.BatchSize
}

// exhausted reports whether no batch is left to load.
func (l *Loader) exhausted() bool {
	return l.batches() == 0 || l.state.Position.Epoch >= l.cfg.Passes
}

// CanReturnItem reports whether a task can be had now.
func (l *Loader) CanReturnItem() bool {
	return len(l.state.Buffer) > 0 || !l.exhausted() && !l.state.Locked
}

// IsFinished reports whether no task is left, and none will be unless a lease fails.
func (l *Loader) IsFinished() bool { return len(l.state.Buffer) == 0 && l.exhausted() }

// Status is one reading of the loader.
func (l *Loader) Status() rl.LoaderStatus {
	return rl.LoaderStatus{
		Drained: !l.CanReturnItem(), Leased: len(l.leases), Finished: l.IsFinished(), Position: l.state.Position, Locked: l.state.Locked,
	}
}

// Len is how many tasks are left, those that are leased not among them.
func (l *Loader) Len() int {
	perPass := l.cfg.Length
	if l.cfg.DropLast {
		perPass = l.batches() * l.cfg.BatchSize
	}
	items := 0
	if !l.exhausted() {
		items = (l.cfg.Passes-l.state.Position.Epoch)*perPass - l.state.Position.Index
	}
	return len(l.state.Buffer) + items*l.cfg.Repeat
}

// load appends the next batch to the buffer.
func (l *Loader) load() {
	position := &l.state.Position
	order := l.orderOf(position.Epoch)
	end := min(position.Index+l.cfg.BatchSize, l.cfg.Length)
	for _, index := range order[position.Index:end] {
		for run := range l.cfg.Repeat {
			l.state.Buffer = append(l.state.Buffer, Entry{Pass: position.Epoch, Index: index, Run: run})
		}
	}
	l.advance()
	l.state.Started, l.state.Begun = true, false
	l.state.Locked = l.cfg.KeepBatchOrder
}

// advance moves the position behind the next batch.
func (l *Loader) advance() {
	position := &l.state.Position
	position.Batch++
	position.Index = min(position.Batch*l.cfg.BatchSize, l.cfg.Length)
	if position.Batch >= l.batches() {
		*position = rl.Position{Epoch: position.Epoch + 1}
	}
}

// orderOf is the order of the items in a pass.
func (l *Loader) orderOf(pass int) []int {
	if l.order == nil || l.pass != pass {
		l.order, l.pass = permutation(l.cfg.Length, l.cfg.Shuffle, l.cfg.Seed+uint64(pass)*0x9E3779B97F4A7C15), pass
	}
	return l.order
}

// permutation is Fisher and Yates' shuffle with the numbers of SplitMix64 (Steele, Lea and Flood, 2014). They are
// written out so that an order outlives versions of libraries.
func permutation(n int, shuffle bool, seed uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if !shuffle {
		return order
	}
	for i := n - 1; i > 0; i-- {
		seed += 0x9E3779B97F4A7C15
		z := seed
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		z ^= z >> 31
		j := int(z % uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// Unlock lets the next batch begin; it is loaded at once if the buffer is empty. A second Unlock for the same batch,
// from a caller that did not get the answer to its first, changes nothing.
func (l *Loader) Unlock() {
	if l.state.Started && !l.state.Begun && len(l.state.Buffer) > 0 {
		return
	}
	l.state.Locked = false
	if len(l.state.Buffer) == 0 && !l.exhausted() {
		l.load()
	}
}

// Reset begins the data again: nothing is buffered, leased or locked.
func (l *Loader) Reset() {
	l.state.Buffer = nil
	clear(l.leases)
	clear(l.workers)
	l.state.Position, l.state.Locked, l.state.Started, l.state.Begun = rl.Position{}, false, false, false
}

// StartedError is skip_batches after the first task was given.
type StartedError struct{ Position rl.Position }

func (e *StartedError) Error() string {
	return fmt.Sprintf("skip_batches: the data were begun (pass %d, batch %d); skip before the first task is given, or reset first", e.Position.Epoch, e.Position.Batch)
}

// Skip leaves out batches before the first task, and returns how many there were to leave out.
func (l *Loader) Skip(n int) (int, error) {
	if n < 0 {
		return 0, fmt.Errorf("skip_batches: %d is negative", n)
	}
	if l.state.Started {
		return 0, &StartedError{Position: l.state.Position}
	}
	for skipped := range n {
		if l.exhausted() {
			return skipped, nil
		}
		l.advance()
	}
	return n, nil
}

// Add appends a task, or has it come next, and returns it.
func (l *Loader) Add(item []byte, front bool) Entry {
	if item == nil {
		item = []byte{}
	}
	e := Entry{Index: l.cfg.Length + l.state.Added, Added: item, Number: l.state.Added}
	l.state.Added++
	if front {
		l.state.Buffer = slices.Insert(l.state.Buffer, 0, e)
	} else {
		l.state.Buffer = append(l.state.Buffer, e)
	}
	return e
}

// rememberedItems is how many of the last added items are known by their IDs: more than can be on their way.
const rememberedItems = 1024

// AddOnce is Add of an item with an ID. An item of the same ID, from a caller that did not get its answer, is not added again.
func (l *Loader) AddOnce(id string, item []byte, front bool) {
	if id != "" {
		if slices.Contains(l.state.AddedIDs, id) {
			return
		}
		ids := append(slices.Clone(l.state.AddedIDs), id)
		l.state.AddedIDs = ids[max(0, len(ids)-rememberedItems):]
	}
	l.Add(item, front)
}

// Snapshot is the state now.
func (l *Loader) Snapshot() State {
	state := l.state
	state.Buffer, state.Done, state.Again = slices.Clone(l.state.Buffer), slices.Clone(l.state.Done), maps.Clone(l.state.Again)
	for _, held := range l.inOrder() {
		state.Leases = append(state.Leases, *held)
	}
	return state
}

// ChangedError is a snapshot of other data.
type ChangedError struct {
	Have, Snapshot int // items
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the loader's snapshot is of data with %d items, now there are %d; restore the data, or begin without the snapshot", e.Snapshot, e.Have)
}

// Restore makes the loader what it was at Snapshot.
func (l *Loader) Restore(state State) error {
	if state.Length != l.cfg.Length {
		return &ChangedError{Have: l.cfg.Length, Snapshot: state.Length}
	}
	l.state = state
	l.state.Buffer, l.state.Done, l.state.Again = slices.Clone(state.Buffer), slices.Clone(state.Done), maps.Clone(state.Again)
	l.state.Leases = nil
	l.state.Seed = l.cfg.Seed
	clear(l.leases)
	clear(l.workers)
	for _, held := range state.Leases {
		l.hold(&held)
	}
	return nil
}

// Rewind is Restore of a checkpoint's snapshot: leases do not outlive it, and the run's epoch is a later one. With
// an empty buffer the next batch is as free as the first.
func (l *Loader) Rewind(state State, epoch int) error {
	instance, last, former := l.state.Instance, l.state.Last, l.state.Epoch
	if err := l.Restore(state); err != nil {
		return err
	}
	l.putBack(func(*lease) bool { return true })
	l.state.Instance, l.state.Last = instance, max(last, state.Last)
	l.state.Epoch = max(epoch, former, state.Epoch)
	l.state.Again = nil // the pools number their tasks anew
	if len(l.state.Buffer) == 0 {
		l.state.Locked = false
	}
	return nil
}
