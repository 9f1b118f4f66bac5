package configs

import (
	"maps"
	"slices"
)

// Clone copies declarations for one instance of their module: what was found of
// them without values is kept, values are to be found anew.
func (d *Declarations) Clone() *Declarations {
	c := *d
	c.Locals = make(map[string]*local, len(d.Locals))
	for name, l := range d.Locals {
		c.Locals[name] = &local{name: name, Expression: l.Expression.anew()}
	}
	c.Outputs = cloneBlocks(d.Outputs)
	c.Variables = cloneBlocks(d.Variables)
	c.Calls, c.Data = cloneDeclarations(d.Calls), cloneDeclarations(d.Data)
	c.Addressed = cloneDeclarations(d.Addressed)
	for _, decl := range c.Addressed {
		if decl.Group != nil {
			decl.Group = c.Addressed[decl.Group.Addr]
		}
		for i, job := range decl.Members {
			decl.Members[i] = c.Addressed[job.Addr]
		}
	}
	c.Checks = make([]*Block, 0, len(d.Checks))
	for _, b := range d.Checks {
		c.Checks = append(c.Checks, b.Clone())
	}
	return &c
}

func cloneBlocks(blocks map[string]*Block) map[string]*Block {
	c := make(map[string]*Block, len(blocks))
	for name, b := range blocks {
		c[name] = b.Clone()
	}
	return c
}

func cloneDeclarations[K comparable](decls map[K]*Declaration) map[K]*Declaration {
	c := make(map[K]*Declaration, len(decls))
	for name, decl := range decls {
		copied := *decl
		copied.Block, copied.Instances, copied.Members = decl.Block.Clone(), nil, slices.Clone(decl.Members)
		c[name] = &copied
	}
	return c
}

// Clone copies a block for one instance of its module.
func (b *Block) Clone() *Block {
	c := *b
	c.Attrs = maps.Clone(b.Attrs)
	for name, x := range c.Attrs {
		c.Attrs[name] = x.anew()
	}
	c.Blocks = maps.Clone(b.Blocks)
	for name, children := range c.Blocks {
		copies := make([]*Block, 0, len(children))
		for _, child := range children {
			copies = append(copies, child.Clone())
		}
		c.Blocks[name] = copies
	}
	c.Dynamics = nil
	for _, d := range b.Dynamics {
		copied := *d
		copied.ForEach, copied.Content = d.ForEach.anew(), d.Content.Clone()
		c.Dynamics = append(c.Dynamics, &copied)
	}
	return &c
}
