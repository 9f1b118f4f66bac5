package record

import (
	"encoding/json"
	"fmt"

	"github.com/fray-ml/fray/rl/journal"
)

// Keeper keeps the whole state of a role that is small, in a journal: its last record. Without a journal it keeps nothing.
type Keeper struct{ Journal Journal }

// keptBytes is from which size on a journal is replaced by the newest state.
const keptBytes = 1 << 20

// Put records the state, which is durable once Wait returns.
func (k Keeper) Put(state any) (journal.Position, error) {
	if k.Journal == nil {
		return 0, nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return 0, fmt.Errorf("record the state: %w", err)
	}
	if k.Journal.Size() > keptBytes {
		return k.Journal.Rewrite([][]byte{text}), nil
	}
	return k.Journal.Append(text), nil
}

// Wait waits until what was put is durable.
func (k Keeper) Wait(at journal.Position) error {
	if k.Journal == nil {
		return nil
	}
	return k.Journal.Wait(at)
}

// Save returns once the state is durable.
func (k Keeper) Save(state any) error {
	at, err := k.Put(state)
	if err != nil {
		return err
	}
	return k.Wait(at)
}

// Kept reads the state that was saved last, and reports whether there is one.
func Kept(records [][]byte, into any) (bool, error) {
	if len(records) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(records[len(records)-1], into); err != nil {
		return false, fmt.Errorf("read the state from the journal: %w", err)
	}
	return true, nil
}
