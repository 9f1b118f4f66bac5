package fray_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testSwitch matches variables that only tests set, and build tags of programs
// that only tests build. What tests need of a program beside what it does is
// added where they build it: see cmd/fray/rigged_test.go.
var testSwitch = regexp.MustCompile(`FRAY_TEST_\w+|SHIFTED_CLOCKS|//go:build .*fakeclock`)

// TestNoSwitchesForTests holds that no released program has them.
func TestNoSwitchesForTests(t *testing.T) {
	looked := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if name == "testdata" || name == "tests" || path != "." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".go", ".py", ".s":
		default:
			return nil
		}
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		looked++
		if found := testSwitch.Find(text); found != nil {
			t.Errorf("%s has %s, which only tests use; keep it in tests or testdata", path, found)
		}
		return nil
	})
	if err != nil || looked < 500 {
		t.Errorf("looked at %d files: %v", looked, err)
	}
}

// TestPropertiesBeginWithOneSeed holds that tests of a package that uses rapid begin with
// propertytest's seed: a commit never fails by chance.
func TestPropertiesBeginWithOneSeed(t *testing.T) {
	drawn, fixed := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") || path == "testswitch_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		drawn[dir] = drawn[dir] || strings.Contains(string(text), `"pgregory.net/rapid"`)
		fixed[dir] = fixed[dir] || strings.Contains(string(text), "propertytest.Main(m)") || strings.Contains(string(text), "propertytest.Fix()")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for dir := range drawn {
		switch {
		case drawn[dir] && !fixed[dir]:
			t.Errorf("%s: its properties draw other cases in each run; call propertytest.Main in TestMain", dir)
		case fixed[dir] && !drawn[dir]:
			t.Errorf("%s: it has no properties, so propertytest.Main panics", dir)
		case drawn[dir]:
			count++
		}
	}
	if count < 10 {
		t.Errorf("found %d packages with properties; the search is blind", count)
	}
}
