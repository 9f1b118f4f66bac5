package fray_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

// platform is a system and a processor that fray is built for.
type platform struct{ system, processor string }

// list are all packages below dir with their tests, and whatever these are built
// from, each after what it imports.
func (p platform) list(dir string) ([]listed, error) {
	list := exec.Command("go", "list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,Standard,GoFiles,ImportMap,Module,Error", "./...")
	list.Dir = dir
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.system, "GOARCH="+p.processor)
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages for %v: %w\n%s", p, err, stderr.String())
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode package list: %w", err)
		}
		if !strings.HasSuffix(l.ImportPath, ".test") { // go test writes their main functions
			all = append(all, l)
		}
	}
}

// ours reports whether the module that was listed has the package.
func (l listed) ours() bool { return l.Module != nil && l.Module.Main }

// typesOf checks types from source alone, as no package needs to be compiled for
// that: of the module everything, of what it imports what is outside of functions.
// visit, if any, is given each package of the module.
func (p platform) typesOf(all []listed, visit func(checkedPackage)) []error {
	var mistakes []error
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, l := range all {
		if l.ImportPath == "unsafe" {
			continue
		}
		if l.Error != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %s", l.ImportPath, l.Error.Err))
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				mistakes = append(mistakes, err)
				continue
			}
			parsed = append(parsed, f)
		}
		path, _, _ := strings.Cut(l.ImportPath, " ") // of "path [path.test]"
		config := types.Config{
			IgnoreFuncBodies: !l.ours(),
			FakeImportC:      true,
			Sizes:            types.SizesFor("gc", p.processor),
			Importer: importing(func(path string) (*types.Package, error) {
				if mapped, ok := l.ImportMap[path]; ok {
					path = mapped
				}
				if known := checked[path]; known != nil {
					return known, nil
				}
				return nil, fmt.Errorf("%s is not listed", path)
			}),
			Error: func(err error) {
				if l.ours() {
					mistakes = append(mistakes, err)
				}
			},
		}
		var info *types.Info
		if visit != nil && l.ours() {
			info = &types.Info{Uses: map[*ast.Ident]types.Object{}}
		}
		checked[l.ImportPath], _ = config.Check(path, files, parsed, info) // Error has heard of each mistake
		if info != nil {
			visit(checkedPackage{listed: l, files: files, parsed: parsed, info: info, types: checked[l.ImportPath]})
		}
	}
	return mistakes
}

// checkedPackage is a package of the module with its types.
type checkedPackage struct {
	listed

	files  *token.FileSet
	parsed []*ast.File
	info   *types.Info
	types  *types.Package
}

type importing func(path string) (*types.Package, error)

func (i importing) Import(path string) (*types.Package, error) { return i(path) }

// TestTypesOnEveryPlatform: fray and its tests build on the other platforms. Linters and tests run
// on linux/amd64; make soak runs go vet on the others.
func TestTypesOnEveryPlatform(t *testing.T) {
	for _, module := range []moduleTypes{typesOnLinux(), platform{"darwin", "arm64"}.module(nil)} {
		if module.ours < 80 {
			t.Errorf("go list knows only %d packages on %v: the check is blind", module.ours, module.on)
		}
		for _, err := range module.mistakes {
			t.Errorf("on %v: %v", module.on, err)
		}
	}
}

// moduleTypes are what a check of this module's types found.
type moduleTypes struct {
	on       platform
	ours     int
	shapes   map[string]shape // by import path
	mistakes []error
}

// typesOnLinux takes as long as most other tests of this package together, and serves two of them.
var typesOnLinux = sync.OnceValue(func() moduleTypes {
	shapes := map[string]shape{}
	found := platform{"linux", "arm64"}.module(func(c checkedPackage) {
		if c.isProduct() {
			shapes[c.ImportPath] = shapeOf(c)
		}
	})
	found.shapes = shapes
	return found
})

func (p platform) module(visit func(checkedPackage)) moduleTypes {
	all, err := p.list(".")
	if err != nil {
		return moduleTypes{on: p, mistakes: []error{err}}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a package is garbage once it is checked
	ours := 0
	for _, l := range all {
		if l.ours() {
			ours++
		}
	}
	return moduleTypes{on: p, ours: ours, mistakes: p.typesOf(all, visit)}
}

// TestTypesOfAPlatform: mistakes are found that only one platform has, in code
// and in tests.
func TestTypesOfAPlatform(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"m.go":   "package m\n\nimport \"syscall\"\n\nfunc F() error { return syscall.Dup2(1, 2) }\n",
		"m_test.go": "package m_test\n\nimport (\n\t\"syscall\"\n\t\"testing\"\n\n\t\"example.com/m\"\n)\n\n" +
			"func TestF(t *testing.T) {\n\t_ = m.F()\n\t_ = syscall.Fork\n\t_ = syscall.SYS_FORK\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for p, want := range map[platform][]string{
		{"linux", "arm64"}:  {"Dup2", "Fork", "SYS_FORK"},
		{"linux", "amd64"}:  {"Fork"},
		{"darwin", "arm64"}: {"Fork"},
	} {
		all, err := p.list(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, err := range p.typesOf(all, nil) {
			got = append(got, err.Error()[strings.LastIndex(err.Error(), ".")+1:])
		}
		slices.Sort(got)
		if !slices.Equal(slices.Compact(got), want) {
			t.Errorf("on %v: got %v, want undefined %v", p, got, want)
		}
	}
}
