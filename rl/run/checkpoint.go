package run

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/rl"
)

const checkpointPrefix = "global_step_"

// CheckpointName is the name of the checkpoint after so many updates.
func CheckpointName(step int64) string { return fmt.Sprintf("%s%d", checkpointPrefix, step) }

// CheckpointStep is the number of updates in a checkpoint, by its name. Other names, among them those of
// checkpoints that are being written, are none.
func CheckpointStep(name string) (step int64, ok bool) {
	digits, found := strings.CutPrefix(name, checkpointPrefix)
	if !found || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	step, err := strconv.ParseInt(digits, 10, 64)
	return step, err == nil
}

// Latest is the checkpoint with the most updates among names of a directory.
func Latest(names []string) (name string, step int64, ok bool) {
	for _, candidate := range names {
		if n, valid := CheckpointStep(candidate); valid && (!ok || n > step) {
			name, step, ok = candidate, n, true
		}
	}
	return name, step, ok
}

// Manifest is run.json, which a checkpoint has beside the weights: what else the run needs to go on.
type Manifest struct {
	Step     int64            `json:"step"`
	Epoch    int              `json:"epoch"` // of the run
	Versions map[string]int64 `json:"versions"`
	Position rl.Position      `json:"loader_position"`
	Loader   []byte           `json:"loader"` // the loader's snapshot, base64
	// Untrained are tasks that were done and whose trajectories are in no update of the checkpoint.
	Untrained []string         `json:"untrained,omitempty"`
	Seeds     map[string]int64 `json:"seeds"`
}
