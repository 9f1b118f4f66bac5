package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Problem is what is wrong with one key.
type Problem struct {
	Path string // "roles.trajectory_pool.count"; "": of the document
	Text string // what is wrong
	Fix  string // what to write instead; "" where Text has it
}

// String is the problem as a line.
func (p Problem) String() string {
	text := p.Text
	if p.Fix != "" {
		text += ". " + p.Fix
	}
	if p.Path == "" {
		return text
	}
	return p.Path + ": " + text
}

// InvalidError is a configuration with problems, in the order of the keys.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return "invalid configuration:\n  " + strings.Join(lines, "\n  ")
}

// Read returns the configuration of a JSON document, with defaults where it has no key or null. Its error is an InvalidError with all
// problems. A section whose type, backend or class is a "module:Class" may have keys of its own, which only that class reads.
func Read(text []byte) (*Config, error) {
	document, problem := parse(text)
	if problem != nil {
		return nil, &InvalidError{Problems: []Problem{*problem}}
	}
	if problems := checkDocument(document); len(problems) > 0 {
		return nil, &InvalidError{Problems: problems}
	}
	c := Defaults()
	if err := json.Unmarshal(withoutNull(document), c); err != nil {
		return nil, &InvalidError{Problems: []Problem{{Text: err.Error()}}}
	}
	if problems := c.Check(); len(problems) > 0 {
		return nil, &InvalidError{Problems: problems}
	}
	return c, nil
}

// parse reads the one object of a document. Numbers keep their text.
func parse(text []byte) (map[string]any, *Problem) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var document map[string]any
	err := decoder.Decode(&document)
	if err == nil && document == nil {
		return nil, &Problem{Text: "want a JSON object, got null"}
	}
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			return nil, &Problem{Text: "the JSON object ends, and more text follows"}
		}
		return document, nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return nil, &Problem{Text: fmt.Sprintf("line %d is no JSON: %v", line, err)}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, &Problem{Text: "want a JSON object, got " + wrong.Value}
	}
	return nil, &Problem{Text: "want a JSON object: " + err.Error()}
}

// withoutNull is a document without the keys that are null: they have their defaults.
func withoutNull(document map[string]any) []byte {
	var drop func(any)
	drop = func(value any) {
		object, ok := value.(map[string]any)
		if !ok {
			return
		}
		for name, item := range object {
			if item == nil {
				delete(object, name)
				continue
			}
			drop(item)
		}
	}
	drop(document)
	text, err := json.Marshal(document)
	if err != nil { // it was JSON
		return []byte("{}")
	}
	return text
}

// Defaults is the configuration of an empty document.
func Defaults() *Config {
	document := map[string]any{}
	for _, key := range Keys() {
		if key.Default != nil && !strings.Contains(key.Path, "*") {
			put(document, key.Path, key.Default)
		}
	}
	c := &Config{}
	text, err := json.Marshal(document)
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil { // a key's default does not fit its field: TestDefaults
		panic(fmt.Sprintf("defaults of the configuration: %v", err))
	}
	return c
}

// put sets a value below a dotted path.
func put(document map[string]any, path string, value any) {
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		document[first] = value
		return
	}
	inner, ok := document[first].(map[string]any)
	if !ok {
		inner = map[string]any{}
		document[first] = inner
	}
	put(inner, rest, value)
}
