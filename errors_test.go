package fray_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const errorsPage = "docs/errors.md"

// TestErrorsPage: every summary of a diagnostic, and every named error that people
// meet, is a heading of the page, and every heading is one of those. A summary
// that is put together ("Invalid value for " + name) is a heading with an ellipsis.
func TestErrorsPage(t *testing.T) {
	page, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, heading := range regexp.MustCompile("(?m)^### (.+)$").FindAllSubmatch(page, -1) {
		name := string(heading[1])
		if said[name] {
			t.Errorf("%s has two headings %q", errorsPage, name)
		}
		said[name] = true
	}
	in := summaries(t)
	for name, places := range in {
		if !covered(said, name) {
			t.Errorf("%s has no heading %q (%s)", errorsPage, name, strings.Join(places, ", "))
		}
	}
	// What the HCL library says itself stands under a heading of its own.
	_, library, ok := strings.Cut(string(page), "\n## Of the syntax\n")
	if !ok {
		t.Fatalf("%s has no section of the syntax", errorsPage)
	}
	for name := range said {
		if in[name] == nil && !begins(in, name) && !strings.Contains(library, "\n### "+name+"\n") {
			t.Errorf("%s has a heading %q, which nothing says", errorsPage, name)
		}
	}
	if len(in) < 80 {
		t.Errorf("the code has only %d summaries: the scan is blind", len(in))
	}
}

// covered reports whether a summary has a heading, be it one with an ellipsis.
func covered(headings map[string]bool, summary string) bool {
	if headings[summary] {
		return true
	}
	for heading := range headings {
		if start, ok := strings.CutSuffix(heading, "…"); ok && strings.HasPrefix(summary, start) {
			return true
		}
	}
	return false
}

// begins reports whether a heading with an ellipsis is one of a summary.
func begins(summaries map[string][]string, heading string) bool {
	for summary := range summaries {
		if covered(map[string]bool{heading: true}, summary) {
			return true
		}
	}
	return false
}

// isInternal reports whether a named error is handled, and never shown.
func isInternal(name string) bool {
	return slices.Contains([]string{"ErrNotFound", "ErrConflict", "ErrUnchanged", "ErrNotLive", "ErrNoVersions", "ErrReported", "ErrFenced", "ErrUndeclared"}, name)
}

// summaries are what the module's packages say, with the places.
func summaries(t *testing.T) map[string][]string {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		parsed = append(parsed, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := summaryScan{files: files, argument: map[string]int{}, constants: map[string]string{}, found: map[string][]string{}}
	for _, f := range parsed {
		ast.Inspect(f, s.declarations)
	}
	for _, f := range parsed {
		ast.Inspect(f, s.uses)
	}
	return s.found
}

// summaryScan finds what is handed on as a summary.
type summaryScan struct {
	files     *token.FileSet
	argument  map[string]int    // functions that take a summary, and where
	constants map[string]string // texts by name
	found     map[string][]string
}

func (s *summaryScan) declarations(n ast.Node) bool {
	if spec, ok := n.(*ast.ValueSpec); ok {
		for i, name := range spec.Names {
			if i < len(spec.Values) && name.Obj.Kind == ast.Con {
				s.constants[name.Name] = s.text(spec.Values[i])
			}
		}
	}
	f, ok := n.(*ast.FuncDecl)
	if !ok {
		return true
	}
	i := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if name.Name == "summary" {
				s.argument[f.Name.Name] = i
			}
			i++
		}
	}
	return true
}

func (s *summaryScan) uses(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Summary" {
			s.add(n.Value)
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			field, isField := left.(*ast.SelectorExpr)
			variable, isVariable := left.(*ast.Ident)
			if isField && field.Sel.Name == "Summary" || isVariable && variable.Name == "summary" {
				s.add(n.Rhs[min(i, len(n.Rhs)-1)])
			}
		}
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		if i, ok := s.argument[name]; ok && i < len(n.Args) {
			s.add(n.Args[i])
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if strings.HasPrefix(name.Name, "Err") && i < len(n.Values) && !isInternal(name.Name) {
				s.addError(n.Values[i])
			}
		}
	}
	return true
}

// addError takes the text of errors.New("…").
func (s *summaryScan) addError(expr ast.Expr) {
	if call, ok := expr.(*ast.CallExpr); ok && len(call.Args) == 1 {
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "New" {
			s.add(call.Args[0])
		}
	}
}

func (s *summaryScan) add(expr ast.Expr) {
	if text := s.text(expr); text != "" {
		s.found[text] = append(s.found[text], s.files.Position(expr.Pos()).String())
	}
}

// text is a constant text, or the constant beginning of one with an
// ellipsis; "" for what is handed on from elsewhere.
func (s *summaryScan) text(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(expr.Value)
		return text
	case *ast.BinaryExpr:
		left, right := s.text(expr.X), s.text(expr.Y)
		if left != "" && right == "" {
			return left + "…"
		}
		return left + right
	case *ast.Ident:
		if expr.Obj != nil && expr.Obj.Kind == ast.Con {
			if spec, ok := expr.Obj.Decl.(*ast.ValueSpec); ok {
				i := slices.IndexFunc(spec.Names, func(n *ast.Ident) bool { return n.Name == expr.Name })
				if i < len(spec.Values) { // not one of many by iota
					return s.text(spec.Values[i])
				}
			}
		}
		if expr.Obj == nil { // of another file of the package
			return s.constants[expr.Name]
		}
	}
	return ""
}
