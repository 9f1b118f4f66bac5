package roles

import (
	"encoding/json"
	"fmt"

	"github.com/fray-ml/fray/rl/journal"
)

// keeper keeps the whole state of a role that is small, in a journal: its last record. Without a journal it keeps nothing.
type keeper struct{ journal Journal }

// keptBytes is from which size on a journal is replaced by the newest state.
const keptBytes = 1 << 20

// put records the state, which is durable once wait returns.
func (k keeper) put(state any) (journal.Position, error) {
	if k.journal == nil {
		return 0, nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return 0, fmt.Errorf("record the state: %w", err)
	}
	if k.journal.Size() > keptBytes {
		return k.journal.Rewrite([][]byte{text}), nil
	}
	return k.journal.Append(text), nil
}

// wait waits until what was put is durable.
func (k keeper) wait(at journal.Position) error {
	if k.journal == nil {
		return nil
	}
	return k.journal.Wait(at)
}

// save returns once the state is durable.
func (k keeper) save(state any) error {
	at, err := k.put(state)
	if err != nil {
		return err
	}
	return k.wait(at)
}

// kept reads the state that was saved last, and reports whether there is one.
func kept(records [][]byte, into any) (bool, error) {
	if len(records) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(records[len(records)-1], into); err != nil {
		return false, fmt.Errorf("read the state from the journal: %w", err)
	}
	return true, nil
}

// signal is closed and replaced at each change of what it guards.
type signal struct{ changed chan struct{} }

func newSignal() signal { return signal{changed: make(chan struct{})} }

// notify lets all that wait check again.
func (s *signal) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
