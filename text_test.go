package fray_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// deciders are the folders whose code decides: nothing in them goes by a text that
// is for people. A cause is typed, and the text stands beside it.
func deciders() []string {
	return append(verbRooms(), "schema", "accelerators", "lang", "plan", "apply", "state", "controller", "agent", "providers", "actorrpc", "clusterapi", "modules", "rehearse")
}

// verbRooms are the folders of the verbs and of what they do.
func verbRooms() []string {
	return []string{
		"cmd/fray", "cmd/fray/register", "cmd/fray/stateverbs", "terminal", "stack", "configuration", "proposal", "savedplan", "progress", "rollout", "testruns", "status", "events",
		"follow", "session", "profiling", "bugreport", "runclient", "console", "migration", "surgery", "hostagent", "watch", "release", "costreport", "review", "pipeline",
	}
}

// messageFields are the fields that hold texts for people.
func messageFields() []string {
	return []string{"Reason", "Text", "Message", "Why", "Detail", "Summary", "text", "reason", "message", "why"}
}

// mayRead are the functions that look at a text and decide nothing by it but what is
// shown or recorded, or that read what others give no code for: "folder.function",
// and why. A folder alone stands for all of its functions.
func mayRead() map[string]string {
	const (
		shows   = "writes for people"
		records = "keeps a text up to date"
		foreign = "reads what others say who give no code"
	)
	return map[string]string{
		"plan/render":                             shows,
		"plan/markdown":                           shows,
		"cmd/fray":                                shows,
		"controller/web":                          shows,
		"plan/lifecycle.describe":                 shows,
		"plan/lifecycle.notUpYet":                 shows,
		"plan/lifecycle.overdueBoot":              shows,
		"apply.hostAsker.in":                      shows,
		"plan/schedule.Placer.retry":              shows,
		"plan/schedule.Placer.because":            shows,
		"plan/change.teller.job":                  records,
		"plan/lifecycle.Attempts.observe":         records,
		"plan/lifecycle.Attempts.noteReadiness":   records,
		"plan/reconcile.Reconciler.ConcludeWaits": records,
		"plan/incremental.sameChange":             records,
		"plan/incremental.sameStatus":             records,
		"plan/incremental.sameToOthers":           records,
		"controller/actors.whyAwaited":            shows,
		"controller/metadata.overError":           shows,
		"controller/pause.Text":                   shows,
		"agent.stopReason":                        shows,
		"state/keyring.brief":                     foreign,
		"state/keyring.identityReason":            foreign,
		"rehearse.oracle.created":                 foreign,
		"modules.newest":                          "its text is a version as it is written",
		"actorrpc/rpcerror.Error.Is":              "an error without a message stands for its code in errors.Is",
		"actorrpc/host.recordEnd":                 records,
		"rehearse.oracle.stepped":                 "holds that every wait has a text",
		"providers/gcp/emulator/compute":          "its Reason is a closed set",
		"providers/gcp/emulator/tpu":              "its Reason is a closed set",
		"providers/providertest":                  "is a suite of tests",
		"state/store/storetest":                   "is a suite of tests",
		"providers/gcp/emulator/metadata":         "is the other side: a value that clients set",
		"lang/load.libraryCause":                  foreign,
		"lang/eval.Redact":                        "hides a text that may quote a secret",
		"lang/eval.Given.IsOf":                    "its Text is what a flag was given: NAME=VALUE",
		"lang/eval.outsideValues.assign":          "its Text is what a flag was given: NAME=VALUE",
		"bugreport.declaredSecrets":               "its Text is what a flag was given: NAME=VALUE",
		"providers/gcp/apierror":                  foreign,
		"providers/gcp/check":                     foreign,
		"providers/gcp/client":                    foreign,
		"providers/gcp/gce":                       foreign,
		"providers/gcp/kms":                       foreign,
		"providers/gcp/mark":                      "its Text is a spec in JSON",
		"providers/gcp/tpu":                       foreign,
		"terminal/diag":                           shows,
		"savedplan":                               shows,
		"review":                                  shows,
		"pipeline.Environment.writeSummary":       "its Summary is the name of a file",
		"progress":                                shows,
		"status":                                  shows,
		"follow":                                  shows,
		"runclient":                               shows,
		"configuration.Loaded.Unreported":         shows,
	}
}

// TestNothingDecidesByText finds comparisons of texts for people, and searches in them.
func TestNothingDecidesByText(t *testing.T) {
	may, used := mayRead(), map[string]bool{}
	for _, dir := range deciders() {
		for file, f := range productFiles(t, dir) {
			folder := path.Dir(file)
			for _, found := range textDecisions(f.file) {
				name := folder + "." + found.function
				switch {
				case may[folder] != "":
					used[folder] = true
				case may[name] != "":
					used[name] = true
				default:
					t.Errorf("%s: %s in %s: a text for people decides; give its cause a type", f.set.Position(found.at), found.what, name)
				}
			}
		}
	}
	for name := range may {
		if !used[name] {
			t.Errorf("mayRead names %s, which looks at no text: take it out", name)
		}
	}
}

type parsed struct {
	set  *token.FileSet
	file *ast.File
}

// productFiles are the Go files below a folder that are no tests and not generated,
// by their path within the module.
func productFiles(t *testing.T, dir string) map[string]parsed {
	t.Helper()
	found := map[string]parsed{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			return cmpErr(err, fs.SkipDir)
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(f) {
			found[filepath.ToSlash(file)] = parsed{set, f}
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("read %s: %v, %d files", dir, err, len(found))
	}
	return found
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// textDecision is a place where code goes by a text.
type textDecision struct {
	function, what string
	at             token.Pos
}

func textDecisions(f *ast.File) []textDecision {
	var found []textDecision
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		note := func(at ast.Node, what string) {
			found = append(found, textDecision{function: functionName(fn), what: what, at: at.Pos()})
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if text := cmpText(n); text != "" {
					note(n, "compares "+text)
				}
			case *ast.SwitchStmt:
				if text := messageOf(n.Tag); text != "" {
					note(n, "switches on "+text)
				}
			case *ast.CallExpr:
				if text := searched(n); text != "" {
					note(n, "searches "+text)
				}
			case *ast.IndexExpr:
				if text := messageOf(n.Index); text != "" {
					note(n, "looks up by "+text)
				}
			}
			return true
		})
	}
	return found
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// cmpText is the message that a comparison is of, "" if it is of none.
func cmpText(n *ast.BinaryExpr) string {
	switch n.Op {
	case token.EQL, token.NEQ, token.LSS, token.GTR, token.LEQ, token.GEQ:
	default:
		return ""
	}
	if text := messageOf(n.X); text != "" {
		return text
	}
	return messageOf(n.Y)
}

// messageOf is a field that holds a text for people, or the text of an error.
func messageOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if slices.Contains(messageFields(), x.Sel.Name) {
			return "the field " + x.Sel.Name
		}
	case *ast.CallExpr:
		s, ok := x.Fun.(*ast.SelectorExpr)
		if !ok || len(x.Args) > 0 {
			return ""
		}
		switch s.Sel.Name {
		case "Error":
			return "the text of an error"
		case "Message", "GetMessage", "GetReason": // of a status, or on the wire
			return "the text of " + s.Sel.Name
		}
	}
	return ""
}

// searched is the message in which a function of package strings searches.
func searched(n *ast.CallExpr) string {
	s, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || len(n.Args) == 0 {
		return ""
	}
	if from, ok := s.X.(*ast.Ident); !ok || from.Name != "strings" {
		return ""
	}
	switch s.Sel.Name {
	case "Contains", "ContainsAny", "HasPrefix", "HasSuffix", "Index", "LastIndex", "EqualFold", "Cut", "CutPrefix", "CutSuffix", "Split", "Fields", "Compare":
		return messageOf(n.Args[0])
	}
	return ""
}

// TestTextDecisionsAreFound holds that the rule finds what it is for.
func TestTextDecisionsAreFound(t *testing.T) {
	const code = `package p
func (s *slice) goes() bool { return s.Reason == "" }
func is(a, b reason) bool { return a.text != b.text }
func kind(err error) bool { return strings.Contains(err.Error(), "quota") }
func level(e event) int { switch e.Text { case "is up": return 1 }; return levels[e.Reason] }
func missing(st *status.Status) bool { _, _, ok := strings.Cut(st.Message(), "near"); return ok }
func known(d *hcl.Diagnostic) bool { return d.Summary == "Not known" }
func fine(s slice) bool { return s.Cause == moved && strings.Contains(s.Name, "a") && s.Text() == "" }
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, found := range textDecisions(f) {
		got = append(got, fmt.Sprintf("%s %s", found.function, found.what))
	}
	want := []string{
		"slice.goes compares the field Reason", "is compares the field text", "kind searches the text of an error",
		"level switches on the field Text", "level looks up by the field Reason",
		"missing searches the text of Message", "known compares the field Summary",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// printers are the folders whose literals people read as causes.
func printers() []string {
	return append(verbRooms(), "plan", "apply", "state", "controller", "agent", "providers")
}

// innerWords are names that only fray's own code uses: people read causes.
func innerWords() []string {
	return []string{"adopted", "generation", "assignment", "did not live", "taken over"}
}

// mayUse are literals with such a word that no job's history, event or reason shows,
// or in which it is the field's own: by a part of the literal, and why.
func mayUse() map[string]string {
	const (
		operator = "an error of the machinery, for who operates it"
		offer    = "what users call it: generations of TPUs, and what import blocks do"
	)
	return map[string]string{
		"read assignment":                        operator,
		"encode assignment":                      operator,
		"write assignment":                       operator,
		"assignment not":                         operator,
		"older assignment":                       operator,
		"the assignment has":                     operator,
		"has read no assignment":                 operator,
		"nor an assignment":                      operator,
		"get generation":                         operator,
		"rejects a write for another generation": operator,
		"which generations need":                 operator,
		"that nothing uses":                      offer,
		"TPU API":                                offer,
		"of the generation":                      offer,
		"configuration taken over":               operator,
		"not taken over":                         operator,
	}
}

// TestPeopleReadCauses finds words of fray's own in what it prints or records for
// people: in the literals that are texts, which have a space in them.
func TestPeopleReadCauses(t *testing.T) {
	may, used := mayUse(), map[string]bool{}
	for _, dir := range printers() {
		for file, f := range productFiles(t, dir) {
			if strings.HasPrefix(file, "providers/gcp/emulator") || strings.HasPrefix(file, "state/store/storetest") {
				continue
			}
			ast.Inspect(f.file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil || !strings.Contains(text, " ") {
					return true
				}
				for _, word := range innerWords() {
					if !strings.Contains(text, word) {
						continue
					}
					allowed := false
					for part := range may {
						if strings.Contains(text, part) {
							allowed, used[part] = true, true
						}
					}
					if !allowed {
						t.Errorf("%s: people read %q, with %q: write what happened or what changed", f.set.Position(lit.Pos()), text, word)
					}
				}
				return true
			})
		}
	}
	for part := range may {
		if !used[part] {
			t.Errorf("mayUse names %q, which nothing uses: take it out", part)
		}
	}
}
