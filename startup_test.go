package fray_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// slowToStart are libraries that take their time before main begins, in each process of fray,
// with what is used in their place.
func slowToStart() map[string]string {
	return map[string]string{
		"cloud.google.com/go/compute/apiv1":          "providers/gcp/computeapi",
		"cloud.google.com/go/storage":                "google.golang.org/api/storage/v1",
		"github.com/envoyproxy/go-control-plane":     "a client without xDS",
		"google.golang.org/grpc/stats/opentelemetry": "a client without it",
		"cloud.google.com/go/monitoring":             "controller/telemetry",
		"gitlab.com/gitlab-org/api/client-go":        "forge/gitlab",
	}
}

// TestStartUp: what a process of fray does before main begins is little, for agents, shims and
// tests start thousands. Tests may use the libraries.
func TestStartUp(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Module", "./cmd/fray").Output()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath, Dir string
			GoFiles         []string
			Module          *struct{ Path string }
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for library, instead := range slowToStart() {
			if within(listed.ImportPath, library) {
				t.Errorf("cmd/fray is built from %s: use %s", listed.ImportPath, instead)
			}
		}
		if listed.Module == nil || listed.Module.Path != module {
			continue
		}
		own++
		for _, name := range listed.GoFiles {
			for _, variable := range compiledAtStart(t, filepath.Join(listed.Dir, name)) {
				t.Errorf("%s/%s: %s is a pattern that each process compiles: compile it where it is used", short(listed.ImportPath), name, variable)
			}
		}
	}
	if own < 100 {
		t.Errorf("go list knows only %d packages of cmd/fray: the rule is blind", own)
	}
}

// compiledAtStart are the variables of a file that hold compiled patterns.
func compiledAtStart(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, declaration := range file.Decls {
		variables, ok := declaration.(*ast.GenDecl)
		if !ok || variables.Tok != token.VAR {
			continue
		}
		for _, spec := range variables.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if ok && slices.ContainsFunc(v.Values, compiles) {
				found = append(found, v.Names[0].Name)
			}
		}
	}
	return found
}

// compiles reports whether computing a value calls a function of package regexp at once.
func compiles(value ast.Expr) bool {
	found := false
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && of.Name == "regexp" && strings.HasPrefix(n.Sel.Name, "MustCompile") {
				found = true
			}
		}
		return true
	})
	return found
}
