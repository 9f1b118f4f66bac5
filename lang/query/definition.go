package query

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/outline"
	"github.com/fray-ml/fray/schema"
)

// Location is a place in a file: its bytes are absolute.
type Location struct {
	File     *outline.File
	From, To int
}

// Definition is where what stands at the offset is declared.
func (q *Query) Definition() (Location, bool) {
	text, start := q.part()
	from, to := word(text, q.Offset-start)
	c := contextAt(text, to)
	block := c.blocks[len(c.blocks)-1]
	switch c.place {
	case placeNone, placeLabel:
	case placeName:
		if site, ok := q.argument(&block, string(text[from:to])); ok {
			return locationOf(site), true
		}
	case placeString:
		if block.typ == string(configs.RootModule) && c.attribute == "source" && q.Module != nil && len(block.labels) > 0 {
			return first(q.module(block.labels[0]))
		}
	case placeValue:
		if from == to {
			return Location{}, false
		}
		if site, ok := q.referred(stepsAround(text, from, to)); ok {
			return locationOf(site), true
		}
	}
	return Location{}, false
}

// stepsAround are the steps of a reference up to a word, and as many after it as name a
// declaration.
func stepsAround(text []byte, from, to int) []string {
	steps := append(stepsBefore(text, from), string(text[from:to]))
	wanted := 2
	switch {
	case steps[0] == string(configs.RootData):
		wanted = 3
	case steps[0] == string(schema.KindJobGroup) && len(steps) > 2:
		wanted = 4
	}
	for len(steps) < wanted && bytes.HasPrefix(text[to:], []byte(".")) {
		next := to + 1
		_, to = word(text, next)
		steps = append(steps, string(text[next:to]))
	}
	return steps
}

func first(d outline.Directory) (Location, bool) {
	if len(d.Files) == 0 {
		return Location{}, false
	}
	return Location{File: d.Files[0]}, true
}

func locationOf(s outline.Site) Location { return located(s.File, s.Part, s.Name) }

func located(f *outline.File, p outline.Placed, rng hcl.Range) Location {
	return Location{f, p.Byte + rng.Start.Byte, p.Byte + rng.End.Byte}
}

// Symbol is a declaration of a file, with those that stand in it.
type Symbol struct {
	Name     string
	Type     string // of the block
	Whole    Location
	At       Location // of the name
	Children []Symbol
}

// Symbols are the declarations of a file in their order.
func Symbols(f *outline.File) []Symbol {
	var all []Symbol
	for _, p := range f.Parts {
		for _, d := range p.Declares {
			s := Symbol{Name: string(d.Symbol), Type: d.Type, Whole: located(f, p, d.Whole), At: located(f, p, d.Name)}
			if n := len(all); d.Group != "" && n > 0 && all[n-1].Name == string(d.Group) {
				all[n-1].Children = append(all[n-1].Children, s)
				continue
			}
			all = append(all, s)
		}
	}
	return all
}
