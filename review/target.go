package review

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// Target is what a comment is about: each has one of its own.
type Target struct {
	Dir       string `json:"dir"` // of the configuration, within the repository: "." or "stacks/train"
	Workspace string `json:"workspace"`
}

// String is "stacks/train", with the workspace unless that is the default one. It is not
// fit for Markdown.
func (t Target) String() string {
	if t.Workspace == "" || t.Workspace == schema.DefaultWorkspace {
		return t.Dir
	}
	return t.Dir + ", workspace " + t.Workspace
}

// Markdown is the target with its names as code.
func (t Target) Markdown() string {
	if t.Workspace == "" || t.Workspace == schema.DefaultWorkspace {
		return Code(t.Dir)
	}
	return Code(t.Dir) + ", workspace " + Code(t.Workspace)
}

// Artifact names the artifact of the target's plan, with no character that a forge or a
// file system rejects.
func (t Target) Artifact() string {
	readable := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, t.Dir+"-"+t.Workspace)
	const most = 60
	readable = strings.Trim(readable[:min(most, len(readable))], "-")
	sum := sha256.Sum256([]byte(t.Dir + "\x00" + t.Workspace))
	return "fray-plan-" + readable + "-" + hex.EncodeToString(sum[:4])
}

// Run is a run of CI, and what it ran on.
type Run struct {
	Commit string // of the pull request's head, in full; "" outside of a repository
	// ID and Attempt order the runs of one workflow: a later run has a higher ID, and the
	// same run that is run again a higher attempt.
	ID, Attempt int64
	URL         string
}
