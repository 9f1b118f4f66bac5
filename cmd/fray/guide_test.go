package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/stack"
)

// Every configuration that the guide to states shows is one that fray takes.
func TestStateGuideSnippets(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "state.md"))
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(snippets) < 2 {
		t.Fatalf("the guide has %d snippets", len(snippets))
	}
	for _, snippet := range snippets {
		dir := t.TempDir()
		writeConfig(t, dir, snippet[1])
		src, diags := lang.Parse([]string{dir})
		if diags.HasErrors() {
			t.Fatalf("%v in\n%s", diags, snippet[1])
		}
		cfg, diags := src.Evaluate(eval.Options{})
		if diags.HasErrors() {
			t.Fatalf("%v in\n%s", diags, snippet[1])
		}
		if err := stack.PolicyOf(cfg.Settings.Encryption).Validate(); err != nil {
			t.Errorf("%v in\n%s", err, snippet[1])
		}
	}
}

// The commands of the guide to modules are run in order, in one shell, on the
// files that it shows, and print what it says.
func TestModulesGuide(t *testing.T) {
	needsFray(t)
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "modules.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, want, files := "set -eu\n", "", 0
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+)(?: file (\\S+))?\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		if block[1] != "console" {
			path := filepath.Join(dir, block[2])
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(block[3]), 0o644)); err != nil {
				t.Fatal(err)
			}
			files++
			continue
		}
		for line := range strings.Lines(block[3]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				script += command
			} else {
				want += line
			}
		}
	}
	if files != 3 || strings.Count(script, "fray ") != 3 {
		t.Fatalf("the guide has %d files and the commands\n%s", files, script)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(fray)+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+dir, "NO_COLOR=1")
	cmd.Env = append(cmd.Env, newEmulator(t).environ()...)
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\nthe script:\n%s\nit printed:\n%s", err, script, got)
	}
	if !strings.HasPrefix(string(got), want) || !strings.Contains(string(got), "Plan: 2 to create") {
		t.Errorf("the commands printed\n%s\nwant it to begin with\n%s", got, want)
	}
}

// What the guide to actors shows is taken: its configurations by fray, its Go
// program by the compiler.
func TestActorsGuide(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "actors.md"))
	if err != nil {
		t.Fatal(err)
	}
	configs, programs := 0, 0
	for _, block := range fence.FindAllStringSubmatch(string(data), -1) {
		dir := t.TempDir()
		switch {
		case block[1] == "hcl":
			configs++
			if err := os.Mkdir(filepath.Join(dir, "app"), 0o755); err != nil {
				t.Fatal(err)
			}
			writeConfig(t, dir, block[2])
			src, diags := lang.Parse([]string{dir})
			if !diags.HasErrors() {
				_, diags = src.Evaluate(eval.Options{})
			}
			if diags.HasErrors() {
				t.Errorf("%v in\n%s", diags, block[2])
			}
		case block[1] == "go" && strings.HasPrefix(block[2], "package main"):
			programs++
			file := filepath.Join(dir, "main.go")
			if err := os.WriteFile(file, []byte(block[2]), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, file)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s in\n%s", err, out, block[2])
			}
		}
	}
	if configs < 2 || programs != 1 {
		t.Errorf("the guide has %d configurations and %d programs", configs, programs)
	}
}
