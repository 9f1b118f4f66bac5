package agent

import "sync"

// stateFile is the agent's memory in the host's directory; safe for concurrent use.
type stateFile struct {
	dir *hostDir

	mu    sync.Mutex
	state agentState
}

// openState reads the memory; an error says that it was lost and begins anew.
func openState(dir *hostDir) (*stateFile, error) {
	state, err := dir.loadState()
	return &stateFile{dir: dir, state: state}, err
}

func (f *stateFile) get() agentState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// change applies edit in any case; an error says that it will not survive the agent.
func (f *stateFile) change(edit func(*agentState)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.state)
	return f.dir.saveState(f.state)
}

// takeSeqs reserves the next n report numbers and returns the last of them, in
// any case; an error says that a later agent may use them again.
func (f *stateFile) takeSeqs(n uint64) (uint64, error) {
	var end uint64
	err := f.change(func(s *agentState) {
		s.SeqLimit += n
		end = s.SeqLimit
	})
	return end, err
}
