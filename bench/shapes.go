package main

import (
	"fmt"
	"strings"
)

// shape is how the resources of a configuration hang together.
type shape string

// The shapes. In all but the first, resources read others (see link).
const (
	shapeForEach shape = "for_each" // N instances of one block
	shapeTens    shape = "tens"     // N blocks in chains of ten
	shapeStages  shape = "stages"   // ten blocks of N/10 instances; each instance reads its like in the block before
	shapeChain   shape = "chain"    // N blocks, each reads the one before
)

func allShapes() []shape { return []shape{shapeForEach, shapeTens, shapeStages, shapeChain} }

// dialect writes the resources of one tool.
type dialect struct {
	// block is a resource of some name that reads another, "" for none; with
	// keys it has one instance for each of local.keys.
	block func(name, reads string, keys bool) string
}

// link is how one of our jobs waits for another.
type link string

// The links.
const (
	linkValue link = "value" // it reads the other's address, of the same instance
	linkOrder link = "order" // depends_on: it names whole blocks, and carries no value
)

// ours is a job of one task. The closest to what theirs does is linkValue: a
// value that is unknown until the other resource is there.
func ours(l link) dialect {
	return dialect{func(name, reads string, keys bool) string {
		var b strings.Builder
		fmt.Fprintf(&b, "job %q {\n", name)
		value, order := fmt.Sprintf("%q", name), ""
		if keys {
			b.WriteString("  for_each = local.keys\n")
			value = "each.key"
		}
		switch {
		case reads == "":
		case l == linkValue:
			value = fmt.Sprintf("job.%s%s.address", reads, instance(keys))
		case l == linkOrder:
			order = fmt.Sprintf("  depends_on = [job.%s]\n", reads)
		}
		fmt.Fprintf(&b, "  command = [\"true\"]\n%s  environment {\n    env = { INPUT = %s }\n  }\n", order, value)
		if l == linkOrder { // without it, others would wait for its end
			b.WriteString("  health_check {\n    exec = [\"true\"]\n  }\n")
		}
		b.WriteString("}\n")
		return b.String()
	}}
}

// theirs is a terraform_data, which is built into terraform.
func theirs() dialect {
	return dialect{func(name, reads string, keys bool) string {
		var b strings.Builder
		fmt.Fprintf(&b, "resource \"terraform_data\" %q {\n", name)
		value := fmt.Sprintf("%q", name)
		if keys {
			b.WriteString("  for_each = local.keys\n")
			value = "each.key"
		}
		if reads != "" {
			value = fmt.Sprintf("terraform_data.%s%s.output", reads, instance(keys))
		}
		fmt.Fprintf(&b, "  input = %s\n}\n", value)
		return b.String()
	}}
}

func instance(keys bool) string {
	if keys {
		return "[each.key]"
	}
	return ""
}

// config is n resources in a shape.
func (d dialect) config(s shape, n int) string {
	var b strings.Builder
	name := func(i int) string { return fmt.Sprintf("r%d", i) }
	blocks, chain, keys := n, 0, false
	switch s {
	case shapeForEach:
		blocks, keys = 1, true
		b.WriteString(keySet(n))
	case shapeStages:
		blocks, keys, chain = 10, true, 10
		b.WriteString(keySet(n / 10))
	case shapeTens:
		chain = 10
	case shapeChain:
		chain = n
	}
	for i := range blocks {
		reads := ""
		if chain > 0 && i%chain > 0 {
			reads = name(i - 1)
		}
		b.WriteString(d.block(name(i), reads, keys))
	}
	return b.String()
}

// keySet declares local.keys. It is written out: range() ends at 1024 values.
func keySet(n int) string {
	var b strings.Builder
	b.WriteString("locals {\n  keys = toset([\n")
	for i := range n {
		fmt.Fprintf(&b, "    \"k%d\",\n", i)
	}
	b.WriteString("  ])\n}\n")
	return b.String()
}
