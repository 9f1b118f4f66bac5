package language

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/schema"
)

// Described is the block as messages name it, "a job block"; the configuration has
// its own.
func (t *BlockType) Described() string {
	if strings.Contains(t.Name, " ") {
		return t.Name
	}
	if t.Variant != "" {
		return fmt.Sprintf("%s %q", t.Name, t.Variant)
	}
	return diagnose.Article(t.Name) + " block"
}

// BlockHint suggests a block that a misspelt attribute may mean.
func BlockHint(name string, t *BlockType) string {
	if near := schema.Nearest(name, t.BlockNames()); near != "" {
		return fmt.Sprintf(" Did you mean the block %s?", Header(t.Variants(near)[0]))
	}
	return ""
}

// Header is how a block of a type is written.
func Header(t *BlockType) string {
	switch {
	case t.Label2 != "":
		return fmt.Sprintf("%s %q %q { … }", t.Name, t.Variant, t.Label2)
	case t.Variant != "":
		return fmt.Sprintf("%s %q { … }", t.Name, t.Variant)
	case t.Label != "":
		return fmt.Sprintf("%s %q { … }", t.Name, t.Label)
	}
	return t.Name + " { … }"
}

// LabelCount is how many labels a block of the type has.
func (t *BlockType) LabelCount() int {
	switch {
	case t.Label2 != "":
		return 2
	case t.Label != "":
		return 1
	}
	return 0
}

// LabelCount is how many labels a block of a type has, as messages put it.
func LabelCount(t *BlockType) string {
	if t.LabelCount() == 2 {
		return "two labels"
	}
	return "one label"
}
