package fray_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const architecturePage = "docs/internals.md"

// TestArchitectureTable: the page's table of packages has one row for each
// package of the module, and none for what is no package, but for python, which
// is another language's.
func TestArchitectureTable(t *testing.T) {
	page, err := os.ReadFile(architecturePage)
	if err != nil {
		t.Fatal(err)
	}
	list, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	packages := []string{"python"}
	for listed := range strings.FieldsSeq(string(list)) {
		if listed == module {
			listed = "."
		}
		packages = append(packages, short(listed))
	}
	if len(packages) < 40 {
		t.Errorf("go list knows only %d packages: the comparison is blind", len(packages))
	}
	for _, mistake := range tableMistakes(string(page), packages) {
		t.Errorf("%s: %s", architecturePage, mistake)
	}
}

// tableMistakes says what a page's table of packages has too little and too much.
func tableMistakes(page string, packages []string) []string {
	var mistakes []string
	rows := map[string]int{}
	for line := range strings.Lines(page) {
		cell, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			continue
		}
		name, rest, _ := strings.Cut(cell, "` | ")
		if says, _, _ := strings.Cut(rest, "|"); strings.TrimSpace(says) == "" {
			mistakes = append(mistakes, fmt.Sprintf("the row of %q does not say what it does", name))
		}
		if !slices.Contains(packages, name) {
			mistakes = append(mistakes, fmt.Sprintf("a row names %q, which is no package", name))
		}
		rows[name]++
	}
	for _, name := range packages {
		if rows[name] != 1 {
			mistakes = append(mistakes, fmt.Sprintf("the table has %d rows of %q: write one", rows[name], name))
		}
	}
	return mistakes
}

func TestTableMistakes(t *testing.T) {
	const heading = "| package | what it does | what it leaves out |\n|---|---|---|\n"
	tests := []struct {
		name, rows string
		want       []string
	}{
		{"whole", "| `plan` | decides | effects |\n| `plan/amend` | amends | |\n", nil},
		{"a package is missing", "| `plan` | decides | effects |\n",
			[]string{`the table has 0 rows of "plan/amend": write one`}},
		{"a package is there twice", "| `plan` | decides | |\n| `plan/amend` | amends | |\n| `plan` | again | |\n",
			[]string{`the table has 2 rows of "plan": write one`}},
		{"a package is gone", "| `plan` | decides | |\n| `plan/amend` | amends | |\n| `gone` | goes | |\n",
			[]string{`a row names "gone", which is no package`}},
		{"a row without a description", "| `plan` | decides | |\n| `plan/amend` | | acting |\n",
			[]string{`the row of "plan/amend" does not say what it does`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := tableMistakes(heading+test.rows, []string{"plan", "plan/amend"}); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
