package roles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/sleep"
)

// End is how a run has ended, as the file ended.json of its directory records it. A process of the run that is started later
// ends at once.
type End struct {
	Run      string    `json:"run"`  // RunID of the run
	Exit     int       `json:"exit"` // status of the controller's process: 1 if the run has failed
	Reason   string    `json:"reason"`
	Step     int64     `json:"step"` // updates that were made
	Leftover string    `json:"leftover,omitempty"`
	Time     time.Time `json:"time"`
}

// endFile is the name of the record below the run's directory.
const endFile = "ended.json"

// endPath is where the end of a run is recorded.
func endPath(cfg *config.Config) string { return filepath.Join(absolute(cfg.Out), endFile) }

// RunID identifies a run: by its key run, which the module writes for all of its processes, else by its whole configuration.
func RunID(cfg *config.Config) string {
	if cfg.Run != "" {
		return cfg.Run
	}
	text, err := json.Marshal(cfg)
	if err != nil { // it was read from JSON
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// readEnd is the recorded end, nil if there is none.
func readEnd(path string) (*End, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var end End
	if err == nil {
		err = json.Unmarshal(text, &end)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the run's end %s: %w; if the run has not ended, remove the file", path, err)
	}
	return &end, nil
}

func writeEnd(path string, end End) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(end, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = durable.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("record the end of the run: %w", err)
	}
	return nil
}

// removeEnd forgets the end of another run, as this one begins.
func removeEnd(path string) error {
	if path == "" {
		return nil
	}
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("forget the end of the run before: %w", err)
	}
	return nil
}

// endOf is the recorded end of this run, nil if it has not ended.
func endOf(cfg *config.Config) (*End, error) {
	end, err := readEnd(endPath(cfg))
	if err != nil || end == nil || end.Run != RunID(cfg) {
		return nil, err
	}
	return end, nil
}

// exitOf is the exit status of the controller's process.
func exitOf(s run.State) int {
	if s.Failed {
		return 1
	}
	return 0
}

// The waits of a process that watches for the end of its run.
const (
	endPoll  = 30 * time.Second       // of one call
	endRetry = 100 * time.Millisecond // after a controller that does not answer, the first time
	endCheck = 2 * time.Second        // of the record
	// A controller whose run has ended stays for so long, so that each process hears of it: those of a cluster may have to
	// find it first.
	lingerTime        = 5 * endRetry
	lingerTimeCluster = 50 * endRetry
)

// untilEnded returns once the controller reports that the run has ended, or its end is recorded, or ctx ends. A controller that
// does not answer, as one that was killed, is no end.
func untilEnded(ctx context.Context, peers Peers, cfg *config.Config, log *slog.Logger) {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	reasons := make(chan string, 2)
	watches.Go(func() { reasons <- reportedEnd(ctx, peers) })
	watches.Go(func() { reasons <- recordedEnd(ctx, cfg, log) })
	if reason := <-reasons; ctx.Err() == nil {
		log.Info("the run has ended, and so does this process", "reason", reason)
	}
}

// reportedEnd returns why the run has ended, once its controller reports it, or ctx ends.
func reportedEnd(ctx context.Context, peers Peers) string {
	for wait := endRetry; ctx.Err() == nil; wait = min(2*wait, longestWait) {
		began := time.Now()
		short, cancel := context.WithTimeout(ctx, endPoll+observeTimeout)
		status, err := ask[ControllerStatus](short, peers, string(rl.Controller), "wait_ended", endPoll.Seconds())
		cancel()
		if err == nil && status.Ended {
			return status.Reason
		}
		if time.Since(began) >= endPoll {
			wait = endRetry
			continue
		}
		sleep.For(ctx, wait) // the controller's process is ending, or is not there
	}
	return ""
}

// recordedEnd returns why the run has ended, once that is recorded, or ctx ends.
func recordedEnd(ctx context.Context, cfg *config.Config, log *slog.Logger) string {
	problem := ""
	for sleep.For(ctx, endCheck) {
		end, err := endOf(cfg)
		switch {
		case end != nil:
			return end.Reason
		case err != nil && err.Error() != problem: // once, not at each attempt
			problem = err.Error()
			log.Warn("whether the run has ended is not known", "error", err)
		}
	}
	return ""
}
