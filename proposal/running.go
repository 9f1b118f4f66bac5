package proposal

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// running is what runs of what a plan ends, with what is known of its checkpoints: where a
// job is told to keep them, and the last one where this machine has that directory too.
func running(ctx context.Context, doc *state.Document, p *plan.Plan, now time.Time) []plan.Running {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := planchange.Running(doc, p, now)
	read := map[string]*plan.Checkpoint{} // jobs of one run share a directory
	for i := range all {
		j := doc.Jobs[all[i].Addr]
		if j == nil || j.Spec == nil {
			continue
		}
		place := checkpointPlace(j.Spec.Environment.Env)
		if place == "" {
			continue
		}
		if read[place] == nil {
			read[place] = orPlace(ctx, place, func() *plan.Checkpoint { return lastCheckpoint(place, now) })
		}
		all[i].Checkpoint = read[place]
	}
	return all
}

// patience is how long a plan waits for directories of checkpoints: one on a file server that
// does not answer must not keep a plan from being made.
const patience = 3 * time.Second

// orPlace is what read returns, or only the place if it takes longer than ctx lasts. A read that
// hangs is left behind.
func orPlace(ctx context.Context, place string, read func() *plan.Checkpoint) *plan.Checkpoint {
	done := make(chan *plan.Checkpoint, 1)
	go func() { done <- read() }()
	select {
	case known := <-done:
		return known
	case <-ctx.Done():
		return &plan.Checkpoint{Place: place}
	}
}

// checkpointVariables are the variables of an environment that commonly say where a job
// keeps its checkpoints.
func checkpointVariables() []string {
	return []string{"CHECKPOINT_DIR", "CHECKPOINT_PATH", "CHECKPOINTS", "CKPT_DIR", "CKPT_PATH"}
}

// rlVariable has the configuration of an RL run, which its roles are given.
const rlVariable = "FRAY_RL_CONFIG"

// checkpointPlace is where a job is told to keep its checkpoints, "" where nothing says
// so, or only a value that must not be shown.
func checkpointPlace(env map[string]schema.Text) string {
	for _, name := range checkpointVariables() {
		if text, ok := env[name]; ok && !text.IsSensitive() && !text.IsUnknown() {
			return text.String()
		}
	}
	text, ok := env[rlVariable]
	if !ok || text.IsSensitive() || text.IsUnknown() {
		return ""
	}
	var run struct {
		Out         string `json:"out"`
		TrainWorker struct {
			CheckpointPath string `json:"checkpoint_path"`
		} `json:"train_worker"`
	}
	if json.Unmarshal([]byte(text.String()), &run) != nil {
		return ""
	}
	if run.TrainWorker.CheckpointPath == "" && run.Out != "" {
		return filepath.Join(run.Out, "checkpoints")
	}
	return run.TrainWorker.CheckpointPath
}

// mostCheckpoints is how many entries of a directory are looked at.
const mostCheckpoints = 10_000

// stepsOf is the number of steps at the end of a name: of global_step_120, step-0120.npz, 120.
// Other endings are of what is being written.
func stepsOf(name string) (int64, bool) {
	switch ext := filepath.Ext(name); ext {
	case ".npz", ".pt", ".pth", ".ckpt", ".safetensors", ".msgpack":
		name = strings.TrimSuffix(name, ext)
	}
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	steps, err := strconv.ParseInt(digits, 10, 64)
	return steps, err == nil
}

// lastCheckpoint is the entry of a directory with the most steps. Of a place that cannot
// be read here no more is known than where it is.
func lastCheckpoint(place string, now time.Time) *plan.Checkpoint {
	known := &plan.Checkpoint{Place: place}
	if !filepath.IsAbs(place) {
		return known
	}
	dir, err := os.Open(place)
	if err != nil {
		return known
	}
	defer dir.Close()
	entries, err := dir.ReadDir(mostCheckpoints)
	if err != nil {
		return known
	}
	most := int64(-1)
	for _, entry := range entries {
		steps, ok := stepsOf(entry.Name())
		info, err := entry.Info()
		if !ok || err != nil || steps <= most {
			continue
		}
		most, known.Last = steps, entry.Name()
		known.Seconds = max(0, int64(now.Sub(info.ModTime())/time.Second))
	}
	return known
}
