package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
)

// ChangeCauses are why what is desired of something differs from what was carried out, as
// far as that is known. They go when the difference does.
type ChangeCauses struct {
	// Variables are, by the path of an attribute that changed, the variables that it
	// reads and whose values changed, sorted.
	Variables map[string][]string `json:"variables,omitempty"`
	// Files are the first ones that changed of a project's, MoreFiles how many more did.
	Files     []FileChange `json:"files,omitempty"`
	MoreFiles int          `json:"more_files,omitempty"`
	// Commits are those with which it came, newest first, MoreCommits how many more there were.
	Commits     []Commit `json:"commits,omitempty"`
	MoreCommits int      `json:"more_commits,omitempty"`
}

// IsZero reports whether no cause is known.
func (c *ChangeCauses) IsZero() bool {
	return c == nil || len(c.Variables) == 0 && len(c.Files) == 0 && c.MoreFiles == 0 && len(c.Commits) == 0
}

// FileVerb is what became of a file of a project.
type FileVerb string

// What becomes of files.
const (
	FileAdded   FileVerb = "added"
	FileChanged FileVerb = "changed"
	FileRemoved FileVerb = "removed"
)

// FileChange is a file that two versions of a project do not have in common.
type FileChange struct {
	Path string   `json:"path"` // below the project's directory, with slashes
	Verb FileVerb `json:"action"`
}

// Variables are digests of the values of variables, made with the stack's key: only its
// holders can compare them with values.
type Variables struct {
	// Key is a digest of nothing: digests of another one are made with another key.
	Key    string            `json:"key"`
	Values map[string]string `json:"values,omitempty"` // by the variable's name
}

// digestSize is the length in bytes of a digest of a value.
const digestSize = 16

// DigestVariables makes digests of values, which are secrets in clear.
func DigestVariables(values map[string]schema.Text, s schema.Sealer) (*Variables, error) {
	key, err := keyedDigest(schema.Secret("fray variables v1"), s)
	if err != nil {
		return nil, err
	}
	v := &Variables{Key: key, Values: make(map[string]string, len(values))}
	for name, value := range values {
		if v.Values[name], err = keyedDigest(value, s); err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
	}
	return v, nil
}

// keyedDigest is the hash of a sealed secret: sealing is deterministic, and what it
// returns cannot be made or opened without the key.
func keyedDigest(secret schema.Text, s schema.Sealer) (string, error) {
	sealed, err := secret.Seal(s)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(sealed)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:digestSize]), nil
}

// Changed are the variables whose values are known to be other than before, sorted.
func (v *Variables) Changed(before *Variables) []string {
	if v == nil || before == nil || v.Key != before.Key {
		return nil
	}
	var changed []string
	for name, digest := range v.Values {
		if was, known := before.Values[name]; known && was != digest {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// Without is v without some variables, of which nothing is known then.
func (v *Variables) Without(names []string) *Variables {
	left := &Variables{Key: v.Key, Values: make(map[string]string, len(v.Values))}
	for name, digest := range v.Values {
		if !slices.Contains(names, name) {
			left.Values[name] = digest
		}
	}
	return left
}
