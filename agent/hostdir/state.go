package hostdir

import (
	"sync"
	"time"
)

// State is the agent's memory in the host's directory; safe for concurrent use.
type State struct {
	dir *Dir

	mu    sync.Mutex
	state AgentState
}

// OpenState reads the memory; an error means that it was lost and begins anew.
func OpenState(dir *Dir) (*State, error) {
	state, err := dir.loadState()
	return &State{dir: dir, state: state}, err
}

// Get returns the memory as it is now.
func (f *State) Get() AgentState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Change applies edit in any case; an error means that it will not survive the agent.
func (f *State) Change(edit func(*AgentState)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.state)
	return f.dir.saveState(f.state)
}

// TakeSeqs reserves the next n report numbers and returns the last of them, in
// any case; an error means that a later agent may use them again. They begin at the time in
// milliseconds, so that they rise even if the memory is lost, or is another machine's.
func (f *State) TakeSeqs(n uint64) (uint64, error) {
	var end uint64
	err := f.Change(func(s *AgentState) {
		s.SeqLimit = max(s.SeqLimit, uint64(max(0, time.Now().UnixMilli()))) + n
		end = s.SeqLimit
	})
	return end, err
}
