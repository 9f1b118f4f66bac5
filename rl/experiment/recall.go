package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// recalled is how many bytes of a file are read for the IDs of its last records.
const recalled = 4 << 20

// IDs are those of the last records, at most n, the newest first: of the steps up to the present one, since the step went
// back last. A process that goes on with the file knows by them which records a caller may send again.
func (j *JSONL) IDs(step int64, n int) ([]string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	info, err := j.file.Stat()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	text := make([]byte, min(info.Size(), recalled))
	if _, err := j.file.ReadAt(text, info.Size()-int64(len(text))); err != nil && len(text) > 0 {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	var ids []string
	last := step
	for len(text) > 0 && len(ids) < n {
		text = bytes.TrimSuffix(text, []byte("\n"))
		at := bytes.LastIndexByte(text, '\n') + 1
		var r struct {
			Step int64  `json:"step"`
			ID   string `json:"id"`
		}
		isWhole := json.Unmarshal(text[at:], &r) == nil // the first may be cut, and one was that a crash ended
		text = text[:at]
		switch {
		case !isWhole || r.Step > step: // of steps from which the run has gone back
			continue
		case r.Step > last:
			return ids, nil
		}
		last = r.Step
		if r.ID != "" {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}
