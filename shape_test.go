package fray_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The shape that a package keeps, so that a reader can hold it in mind. What outgrows it is two ideas.
const (
	maxLines   = 5000 // of a package without its tests
	maxFiles   = 50
	maxKnot    = 15 // files that all need each other
	maxMethods = 40
	maxFields  = 21
	maxFile    = 450 // lines
)

// shape is what is measured of a package.
type shape struct {
	lines, files, knot, methods, fields, longest int
	knotted                                      []string
	methodsOf, fieldsOf, longestFile             string
}

// TestPackagesKeepTheirShape measures every package of the module.
func TestPackagesKeepTheirShape(t *testing.T) {
	seen := 0
	for imported, s := range typesOnLinux().shapes {
		if s.files == 0 {
			continue // generated
		}
		seen++
		name := short(imported)
		for _, limit := range []struct {
			what      string
			got, most int
			where     string
		}{
			{"lines", s.lines, maxLines, "the package"},
			{"files", s.files, maxFiles, "the package"},
			{"files in one knot", s.knot, maxKnot, strings.Join(s.knotted, " ")},
			{"methods", s.methods, maxMethods, s.methodsOf},
			{"fields", s.fields, maxFields, s.fieldsOf},
			{"lines", s.longest, maxFile, s.longestFile},
		} {
			if limit.got > limit.most {
				t.Errorf("%s: %s has %d %s, at most %d: split it by its ideas", name, limit.where, limit.got, limit.what, limit.most)
			}
		}
	}
	if seen < 80 {
		t.Errorf("measured %d packages: the measure is blind", seen)
	}
}

// isProduct reports whether it is a package without tests.
func (c checkedPackage) isProduct() bool {
	return !strings.Contains(c.ImportPath, " ") && !strings.HasSuffix(c.ImportPath, "_test") && c.ImportPath != module
}

// TestFilesOfTestsKeepTheirShape holds that files of tests are read in one sitting, too.
func TestFilesOfTestsKeepTheirShape(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || path != "." && strings.HasPrefix(entry.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		if lines := bytes.Count(text, []byte("\n")); lines > maxFile {
			t.Errorf("%s has %d lines, at most %d: split it by what it tests, or move its data to testdata", path, lines, maxFile)
		}
		return nil
	})
	if err != nil || seen < 300 {
		t.Errorf("measured %d files of tests: %v", seen, err)
	}
}

func shapeOf(c checkedPackage) shape {
	var s shape
	methods, needs := map[string]int{}, map[string]map[string]bool{}
	for _, f := range c.parsed {
		name, lines := c.fileOf(f), c.files.Position(f.FileEnd).Line
		if strings.HasSuffix(name, ".pb.go") {
			continue
		}
		s.lines, s.files = s.lines+lines, s.files+1
		if lines > s.longest {
			s.longest, s.longestFile = lines, name
		}
		needs[name] = c.needs(f, name)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if of, _, isMethod := strings.Cut(functionName(n), "."); isMethod {
					methods[of]++
				}
			case *ast.TypeSpec:
				if fields := fieldsOf(n); fields > s.fields {
					s.fields, s.fieldsOf = fields, n.Name.Name
				}
			}
			return true
		})
	}
	for of, n := range methods {
		if n > s.methods {
			s.methods, s.methodsOf = n, of
		}
	}
	s.knotted = largestKnot(needs)
	s.knot = len(s.knotted)
	return s
}

func (c checkedPackage) fileOf(n ast.Node) string {
	return filepath.Base(c.files.Position(n.Pos()).Filename)
}

// needs are the other files of the package whose declarations, methods or fields a file uses.
func (c checkedPackage) needs(f *ast.File, name string) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		used := c.info.Uses[id]
		if used == nil || used.Pkg() != c.types || !used.Pos().IsValid() {
			return true
		}
		if at := filepath.Base(c.files.Position(used.Pos()).Filename); at != name && !strings.HasSuffix(at, ".pb.go") {
			found[at] = true
		}
		return true
	})
	return found
}

func fieldsOf(spec *ast.TypeSpec) int {
	of, ok := spec.Type.(*ast.StructType)
	if !ok {
		return 0
	}
	n := 0
	for _, field := range of.Fields.List {
		n += max(1, len(field.Names))
	}
	return n
}

// largestKnot is the largest set of files each of which needs each other one, directly or not.
func largestKnot(needs map[string]map[string]bool) []string {
	reach := map[string]map[string]bool{}
	for from := range needs {
		seen, next := map[string]bool{}, []string{from}
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			for to := range needs[at] {
				if !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
		reach[from] = seen
	}
	var largest []string
	for a := range reach {
		knot := []string{a}
		for b := range reach {
			if a != b && reach[a][b] && reach[b][a] {
				knot = append(knot, b)
			}
		}
		if len(knot) > len(largest) {
			slices.Sort(knot)
			largest = knot
		}
	}
	return largest
}

// TestLargestKnot holds that knots are found, and layers are none.
func TestLargestKnot(t *testing.T) {
	needs := func(arrows ...string) map[string]map[string]bool {
		all := map[string]map[string]bool{}
		for _, arrow := range arrows {
			from, to, _ := strings.Cut(arrow, ">")
			if all[from] == nil {
				all[from] = map[string]bool{}
			}
			if all[to] == nil {
				all[to] = map[string]bool{}
			}
			all[from][to] = true
		}
		return all
	}
	for _, test := range []struct {
		needs map[string]map[string]bool
		want  string
	}{
		{needs("a>b", "b>c", "a>c"), "1"},
		{needs("a>b", "b>a", "c>a"), "[a b]"},
		{needs("a>b", "b>c", "c>a", "d>e", "e>d"), "[a b c]"},
	} {
		got := largestKnot(test.needs)
		if text := fmt.Sprint(got); test.want != text && test.want != fmt.Sprint(len(got)) {
			t.Errorf("got %v, want %s", got, test.want)
		}
	}
}
