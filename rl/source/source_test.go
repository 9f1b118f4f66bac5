package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/source"
)

// write writes files of a new directory, by name.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func items(t *testing.T, s source.Source) []rl.Item {
	t.Helper()
	var out []rl.Item
	for i := range s.Len() {
		item, err := s.Item(i)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, item)
	}
	if _, err := s.Item(s.Len()); !errors.As(err, new(*source.IndexError)) {
		t.Errorf("an item past the end: %v, want an IndexError", err)
	}
	return out
}

func TestJSONLines(t *testing.T) {
	dir := write(t, map[string]string{
		"a.jsonl": "{\"prompt\": \"ü\", \"n\": 3, \"x\": [1, 2.5, {\"y\": 9007199254740993}]}\n\n  {\"prompt\": \"b\"}\r\n",
		"b.jsonl": "{\"prompt\": \"no newline at the end\"}",
	})
	s, err := source.JSONL(filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want := []rl.Item{
		{"prompt": "ü", "n": int64(3), "x": []any{int64(1), 2.5, map[string]any{"y": int64(9007199254740993)}}},
		{"prompt": "b"},
		{"prompt": "no newline at the end"},
	}
	if diff := cmp.Diff(want, items(t, s)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	first, _ := s.Item(0)
	first["prompt"] = "changed"
	if again, _ := s.Item(0); again["prompt"] != "ü" {
		t.Errorf("a change of one copy is in the next: %v", again)
	}
}

func TestMistakesNameTheirLine(t *testing.T) {
	for name, text := range map[string]string{"broken": "{\"a\": 1}\n{\"a\": }\n", "array": "{\"a\": 1}\n[1]\n", "two": "{\"a\": 1}\n{} {}\n", "null": "{}\nnull\n"} {
		dir := write(t, map[string]string{"x.jsonl": text})
		if _, err := source.JSONL(filepath.Join(dir, "x.jsonl")); err == nil || !strings.Contains(err.Error(), "x.jsonl:2") {
			t.Errorf("%s: %v, want an error that names line 2", name, err)
		}
	}
	dir := write(t, map[string]string{"empty.jsonl": "\n", "image.png": ""})
	if _, err := source.JSONL(filepath.Join(dir, "empty.jsonl")); err == nil {
		t.Error("a file without items is accepted")
	}
	if _, err := source.Directory(dir); err == nil {
		t.Error("a directory without items is accepted")
	}
	if _, err := source.Directory(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v, want ErrNotExist", err)
	}
}

func TestDirectory(t *testing.T) {
	dir := write(t, map[string]string{"b.jsonl": "{\"i\": 1}\n{\"i\": 2}\n", "a.json": "{\n \"i\": 0\n}\n", "c.txt": "what is 1 + 1?", "d.png": "x"})
	if err := os.Mkdir(filepath.Join(dir, "more.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := source.Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []rl.Item{{"i": int64(0)}, {"i": int64(1)}, {"i": int64(2)}, {"name": "c.txt", "prompt": "what is 1 + 1?"}}
	if diff := cmp.Diff(want, items(t, s)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestMock(t *testing.T) {
	want := []rl.Item{{"prompt": "mock prompt 0"}, {"prompt": "mock prompt 1"}}
	if diff := cmp.Diff(want, items(t, source.Mock(2))); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}
