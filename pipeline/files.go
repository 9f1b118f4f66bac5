package pipeline

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/review"
)

// appendTo adds to a file that the runner reads once the step has ended.
func appendTo(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	_, err = f.WriteString(text)
	return err
}

// writeOutputs gives the runner the outputs of a step.
func (e Environment) writeOutputs(outputs []review.Output) error {
	if e.Outputs != "" {
		if err := appendTo(e.Outputs, review.OutputLines(outputs, "fray_"+rand.Text())); err != nil {
			return fmt.Errorf("write the outputs of this step: %w", err)
		}
	}
	if e.Dotenv != "" {
		if err := durable.Replace(e.Dotenv, []byte(review.Dotenv(outputs)), 0o644); err != nil {
			return fmt.Errorf("write the outputs of this job: %w", err)
		}
	}
	return nil
}

// writeSummary adds to the summary of the job, as far as there is room: the runner drops a summary
// that is too large as a whole.
func (e Environment) writeSummary(text func(limit int) string) error {
	if e.Summary == "" {
		return nil
	}
	used := int64(0)
	if info, err := os.Stat(e.Summary); err == nil {
		used = info.Size()
	}
	const least = 1 << 10
	room := int(review.MaxSummary - used)
	if room < least {
		return nil
	}
	if err := appendTo(e.Summary, e.Masked(text(room-1))+"\n"); err != nil {
		return fmt.Errorf("write the summary of this step: %w", err)
	}
	return nil
}

// writeQuality writes problems as a report of code quality, which GitLab shows beside the files.
func writeQuality(path string, problems []review.Problem) error {
	data, err := json.MarshalIndent(review.Qualities(problems), "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(path, append(data, '\n'), 0o644)
}

// digestOf is the SHA-256 of a file, in hex.
func digestOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// within is a path within the repository, with slashes; a path outside of it stays as it is.
func (e Environment) within(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	root, err := filepath.Abs(e.Root)
	if err != nil {
		return filepath.ToSlash(path)
	}
	// The runner's directory may be behind a link.
	for _, pair := range [][2]string{{root, abs}, {resolved(root), resolved(abs)}} {
		if rel, err := filepath.Rel(pair[0], pair[1]); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.ToSlash(path)
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
