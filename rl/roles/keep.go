package roles

import (
	"encoding/json"
	"fmt"
)

// keeper keeps the whole state of a role that is small, in a journal: each time as a further record, of which the last
// counts. Without a journal it keeps nothing.
type keeper struct{ journal Journal }

// keptSlack is how many bytes of former states are kept before a rewrite: that takes several writes.
const keptSlack = 1 << 20

// save returns once the state is durable.
func (k keeper) save(state any) error {
	if k.journal == nil {
		return nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("record the state: %w", err)
	}
	if k.journal.Size() < keptSlack {
		return k.journal.Wait(k.journal.Append(text))
	}
	return k.journal.Wait(k.journal.Rewrite([][]byte{text}))
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
