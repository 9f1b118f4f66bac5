package amend

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// statement says that what has one address has another one now.
type statement struct {
	from, to schema.Address
	// whole says that neither end names an instance: from stands for all its
	// instances, which keep their keys. Otherwise it is that address alone.
	whole bool
}

func newStatement(from, to schema.Address) statement {
	return statement{from: from, to: to, whole: isWhole(from) && isWhole(to)}
}

// isWhole reports whether an address names no instance.
func isWhole(a schema.Address) bool {
	if a.IsModule() {
		return !strings.HasSuffix(a.Module, "]")
	}
	return a.Key.IsZero()
}

// rename returns where an address goes, and whether it does.
func (s *statement) rename(a schema.Address) (schema.Address, bool) {
	switch {
	case s.from.IsModule():
		rest, in := strings.CutPrefix(a.Module, s.from.Module)
		if !in || rest != "" && rest[0] != '.' && (rest[0] != '[' || !s.whole) {
			return a, false
		}
		a.Module = s.to.Module + rest
		return a, true
	case a == s.from:
		return s.to, true
	case s.from.Kind == schema.KindJobGroup && a.GroupAddress() == s.from:
		a.Group, a.Module = s.to.Name, s.to.Module
		return a, true
	case s.whole && a.Base() == s.from:
		moved := s.to
		moved.Key = a.Key
		return moved, true
	}
	return a, false
}

// reach is an address as the end of a statement: with all that it stands for,
// or alone.
type reach struct {
	addr  schema.Address
	whole bool
}

func (s *statement) origin() reach      { return reach{s.from, s.whole} }
func (s *statement) destination() reach { return reach{s.to, s.whole} }

// around are the reaches that an address is in: its own, and those of what it
// is an instance of or stands in.
func around(a schema.Address) []reach {
	in := []reach{{a, false}, {a, true}}
	if !a.Key.IsZero() {
		in = append(in, reach{a.Base(), true})
	}
	if group := a.GroupAddress(); !group.IsZero() {
		in = append(in, reach{group, true})
	}
	for _, m := range enclosing(a.Module) {
		if module := (schema.Address{Module: m}); module != a {
			in = append(in, reach{module, false}, reach{module, true})
		}
		if i := keyAt(m); i > 0 {
			in = append(in, reach{schema.Address{Module: m[:i]}, true})
		}
	}
	return in
}

// reaches reports whether an address is in a reach, and not the one it is of.
func (r reach) reaches(a schema.Address) bool {
	return r.addr != a && slices.Contains(around(a), r)
}

// enclosing are the paths of the modules that a path leads through, outermost
// first: "module.a[0]" and "module.a[0].module.b" for the latter.
func enclosing(path string) []string {
	var paths []string
	end := 0
	for end < len(path) {
		for range 2 { // "module" and the name
			next := strings.IndexAny(path[end+1:], ".[")
			if next < 0 {
				return append(paths, path)
			}
			end += 1 + next
		}
		if path[end] == '[' {
			end += len(keyOf(path[end:]))
		}
		paths = append(paths, path[:end])
	}
	return paths
}

// keyOf is the key that s begins with, in its brackets.
func keyOf(s string) string {
	if quoted, err := strconv.QuotedPrefix(s[1:]); err == nil {
		return s[:1+len(quoted)+1]
	}
	return s[:strings.IndexByte(s, ']')+1]
}

// keyAt is where the key begins that a module path ends with, 0 if it has none.
func keyAt(path string) int {
	all := enclosing(path)
	start := 0
	if len(all) > 1 {
		start = len(all[len(all)-2]) + 1
	}
	if i := strings.IndexByte(path[start:], '['); i >= 0 {
		return start + i
	}
	return 0
}
