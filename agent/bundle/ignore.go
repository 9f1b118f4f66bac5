package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// rule is one line of a .gitignore file, see gitignore(5).
type rule struct {
	// base is where the file lies, from the project's directory; one that
	// lies above has climbed there, with up.
	base    string
	up      string // the project's directory as seen from the file, "" if not above
	glob    string // of a path below the file's directory
	negated bool
	dirOnly bool
}

// rulesAbove returns the rules of the directories above a project, as far up as
// the git repository that holds it. A project in a .fray directory came with an
// installed module: the repository ignores all of that, and who names it means it.
func rulesAbove(dir string) ([]rule, error) {
	var tops []string // nearest first
	for at := dir; ; {
		if filepath.Base(at) == ".fray" {
			return nil, nil
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			break
		}
		parent := filepath.Dir(at)
		if parent == at {
			return nil, nil // no repository: nothing above counts
		}
		tops = append(tops, parent)
		at = parent
	}
	var rules []rule
	for _, top := range slices.Backward(tops) {
		up, err := filepath.Rel(top, dir)
		if err != nil {
			return nil, err
		}
		found, err := readRules(filepath.Join(top, ".gitignore"))
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			r.up = filepath.ToSlash(up)
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// rulesIn adds the rules of one directory of the project to those above it.
func rulesIn(root, below string, above []rule) ([]rule, error) {
	found, err := readRules(filepath.Join(root, filepath.FromSlash(below), ".gitignore"))
	if err != nil || len(found) == 0 {
		return above, err
	}
	rules := append([]rule(nil), above...)
	for _, r := range found {
		r.base = below
		rules = append(rules, r)
	}
	return rules, nil
}

func readRules(file string) ([]rule, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ignore rules: %w", err)
	}
	var rules []rule
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		if r, ok := parseRule(strings.TrimRight(line, "\r\n")); ok {
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// parseRule reads one line; false for one without a rule.
func parseRule(line string) (rule, bool) {
	if strings.HasPrefix(line, "#") {
		return rule{}, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = strings.TrimSuffix(line, " ")
	}
	var r rule
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return rule{}, false
	}
	if strings.Contains(line, "/") {
		r.glob = strings.TrimPrefix(line, "/")
	} else {
		r.glob = "**/" + line
	}
	// Braces are plain characters in gitignore(5).
	r.glob = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(r.glob)
	if !doublestar.ValidatePattern(r.glob) {
		return rule{}, false // git takes such a line for one that matches nothing
	}
	return r, true
}

// ignored reports whether the last rule that matches a path excludes it. The
// directories above it are known not to be excluded.
func ignored(rules []rule, name string, isDir bool) bool {
	for _, r := range slices.Backward(rules) {
		if r.matches(name, isDir) {
			return !r.negated
		}
	}
	return false
}

func (r rule) matches(name string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.up != "" {
		name = path.Join(r.up, name)
	}
	if r.base != "" {
		name = strings.TrimPrefix(name, r.base+"/")
	}
	if inside, all := strings.CutSuffix(r.glob, "/**"); all {
		// "a/**" is what is below a, not a itself.
		return doublestar.MatchUnvalidated(inside+"/**/*", name)
	}
	return doublestar.MatchUnvalidated(r.glob, name)
}
