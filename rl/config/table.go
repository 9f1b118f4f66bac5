package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Table is the keys as a table of Markdown, the one of docs/guides/nexrl.md.
func Table() string {
	var out strings.Builder
	out.WriteString("| key | type | default | |\n|---|---|---|---|\n")
	for _, key := range Keys() {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", strings.ReplaceAll(key.Path, "*", "ROLE"), key.Type(), key.defaultText(), key.Meaning)
	}
	return out.String()
}

// Type is the type of a key's value in words.
func (k Key) Type() string {
	switch k.Kind {
	case Word:
		return strings.Join(k.Words, ", ")
	case Words:
		return "one or a list of " + strings.Join(k.Words, ", ")
	case Class:
		return strings.Join(k.Words, ", ") + ", or module:Class"
	case Whole, Number, Seconds:
		return string(k.Kind) + k.bounds()
	case Text, Flag, Texts, Any:
	}
	return string(k.Kind)
}

// bounds is what a number may be, in words.
func (k Key) bounds() string {
	switch {
	case k.Above:
		return fmt.Sprintf(" above %v", k.Low)
	case k.High > 0:
		return fmt.Sprintf(" from %v to %v", k.Low, k.High)
	case k.Kind == Whole || k.Low > 0:
		return fmt.Sprintf(" from %v", k.Low)
	}
	return ""
}

func (k Key) defaultText() string {
	if k.Default == nil {
		return ""
	}
	if text, ok := k.Default.(string); ok {
		return text
	}
	text, err := json.Marshal(k.Default)
	if err != nil {
		return fmt.Sprint(k.Default)
	}
	return string(text)
}
