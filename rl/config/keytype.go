package config

import (
	"fmt"
	"strings"
)

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
	case Text, File, Place, Flag, Texts, Any:
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
