package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// list returns what belongs into the bundle of a directory, sorted within each
// directory. Sockets, pipes and devices have no content and are left out;
// directories that end up empty as well, as git does.
func list(dir string) ([]entry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("it is not a directory")
	}
	rules, err := rulesAbove(dir)
	if err != nil {
		return nil, err
	}
	return listBelow(dir, "", rules)
}

func listBelow(root, below string, above []rule) ([]entry, error) {
	rules, err := rulesIn(root, below, above)
	if err != nil {
		return nil, err
	}
	children, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(below)))
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, child := range children {
		name := path.Join(below, child.Name())
		if alwaysIgnored(child.Name()) || ignored(rules, name, child.IsDir()) {
			continue
		}
		found, err := listOne(root, name, child, rules)
		if err != nil {
			return nil, err
		}
		entries = append(entries, found...)
	}
	return entries, nil
}

func listOne(root, name string, child fs.DirEntry, rules []rule) ([]entry, error) {
	if child.IsDir() {
		inside, err := listBelow(root, name, rules)
		if err != nil || len(inside) == 0 {
			return nil, err
		}
		return append([]entry{{path: name, mode: fs.ModeDir}}, inside...), nil
	}
	info, err := child.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	e := entry{path: name, mode: info.Mode()}
	switch {
	case info.Mode().IsRegular():
		e.size = info.Size()
	case info.Mode()&fs.ModeSymlink != 0:
		if e.link, err = linkTarget(root, name); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	return []entry{e}, nil
}

func alwaysIgnored(name string) bool {
	switch name {
	case ".git", ".fray", ".venv", "__pycache__":
		return true
	}
	return false
}
