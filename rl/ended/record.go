package ended

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rl/config"
)

// Record is how a run has ended.
type Record struct {
	Run      string    `json:"run"`  // RunOf the run
	Exit     int       `json:"exit"` // status of the controller's process: 1 if the run has failed
	Reason   string    `json:"reason"`
	Step     int64     `json:"step"` // updates that were made
	Leftover string    `json:"leftover,omitempty"`
	Time     time.Time `json:"time"`
}

// Path is where the end of a run is recorded.
func Path(cfg *config.Config) string {
	path := filepath.Join(cfg.Out, "ended.json")
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// RunOf identifies a run: by its key run, which the module writes for all of its processes, else by its whole configuration.
func RunOf(cfg *config.Config) string {
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

// Read is the record in a file, nil if there is none, or no file is named.
func Read(path string) (*Record, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var record Record
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the run's end %s: %w; if the run has not ended, remove the file", path, err)
	}
	return &record, nil
}

// Write records the end, if a file is named. Once it returns the record is durable.
func (r Record) Write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
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

// Remove forgets the end of another run, as one begins.
func Remove(path string) error {
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

// Of is the recorded end of a run, nil if it has not ended.
func Of(cfg *config.Config) (*Record, error) {
	record, err := Read(Path(cfg))
	if err != nil || record == nil || record.Run != RunOf(cfg) {
		return nil, err
	}
	return record, nil
}
