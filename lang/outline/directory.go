package outline

import (
	"maps"
	"slices"
)

// Directory are the files of a configuration or module.
type Directory struct {
	Files []*File // by name
}

// At is the number of a part among those of a directory.
type At struct{ File, Part int }

// Site is a declaration in its place.
type Site struct {
	Declaration

	File *File
	Part Placed
}

// Sites are all declarations, in the order of the files.
func (d Directory) Sites(visit func(Site) bool) {
	for _, f := range d.Files {
		for _, p := range f.Parts {
			for _, decl := range p.Declares {
				if !visit(Site{decl, f, p}) {
					return
				}
			}
		}
	}
}

// Find returns the first declaration of a symbol.
func (d Directory) Find(s Symbol) (Site, bool) {
	for site := range d.Sites {
		if site.Symbol == s {
			return site, true
		}
	}
	return Site{}, false
}

// Size is the number of parts.
func (d Directory) Size() int {
	n := 0
	for _, f := range d.Files {
		n += len(f.Parts)
	}
	return n
}

// File returns the file of a name, nil if there is none.
func (d Directory) File(name string) *File {
	for _, f := range d.Files {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Changed are the parts of d that another directory does not have, and the symbols that
// those which changed declare or declared.
func (d Directory) Changed(since Directory) (parts map[*Part]bool, symbols map[Symbol]bool) {
	former := map[*Part]bool{}
	anew := d.beside(since)
	for _, p := range since.beside(d) {
		former[p.Part] = true
	}
	parts, symbols = map[*Part]bool{}, map[Symbol]bool{}
	declare := func(p *Part) {
		for _, decl := range p.Declares {
			symbols[decl.Symbol] = true
		}
	}
	for _, p := range anew {
		if former[p.Part] {
			delete(former, p.Part)
			continue
		}
		parts[p.Part] = true
		declare(p.Part)
	}
	for p := range former {
		declare(p)
	}
	return parts, symbols
}

// beside are the parts of a directory without those with which its files and those of the
// same names in another directory begin and end alike.
func (d Directory) beside(other Directory) []Placed {
	var found []Placed
	for _, f := range d.Files {
		o := other.File(f.Name)
		switch {
		case o == nil:
			found = append(found, f.Parts...)
		case o != f:
			most := min(len(f.Parts), len(o.Parts))
			first, last := 0, 0
			for first < most && f.Parts[first].Part == o.Parts[first].Part {
				first++
			}
			for last < most-first && f.Parts[len(f.Parts)-1-last].Part == o.Parts[len(o.Parts)-1-last].Part {
				last++
			}
			found = append(found, f.Parts[first:len(f.Parts)-last]...)
		}
	}
	return found
}

// Affected is what a change touches: the parts whose findings may be others now, and the
// parts that are needed to find them. More parts than most are not followed: then the
// affected ones are the changed parts, those of the same names, and some that refer to
// them, and all is false.
func (d Directory) Affected(changed map[*Part]bool, symbols map[Symbol]bool, most int) (affected, needed map[*Part]bool, all bool) {
	affected = map[*Part]bool{}
	d.each(func(p *Part) {
		if changed[p] || slices.ContainsFunc(p.Declares, func(decl Declaration) bool { return symbols[decl.Symbol] }) {
			affected[p] = true
		}
	})
	found, all := d.dependents(affected, symbols, most)
	maps.Copy(found, affected)
	needed = d.dependencies(found)
	if !all {
		d.removeReferred(found, needed)
	}
	maps.Copy(affected, found)
	return affected, needed, all
}

// removeReferred removes parts that others refer to which are not among the needed ones:
// without those, a part may seem to be unused.
func (d Directory) removeReferred(parts, needed map[*Part]bool) {
	referred := map[Symbol]bool{}
	d.each(func(p *Part) {
		for _, s := range p.Refers {
			referred[s] = referred[s] || !needed[p]
		}
	})
	maps.DeleteFunc(parts, func(p *Part, _ bool) bool {
		return slices.ContainsFunc(p.Declares, func(decl Declaration) bool { return referred[decl.Symbol] })
	})
}

func (d Directory) each(visit func(*Part)) {
	for _, f := range d.Files {
		for _, p := range f.Parts {
			visit(p.Part)
		}
	}
}

// dependents are other parts that refer to some symbols, and those that refer to these; all
// is false if there are more than most.
func (d Directory) dependents(affected map[*Part]bool, symbols map[Symbol]bool, most int) (found map[*Part]bool, all bool) {
	found = map[*Part]bool{}
	for grown := true; grown; {
		grown = false
		next := map[Symbol]bool{}
		d.each(func(p *Part) {
			if affected[p] || found[p] || len(found) > most || !slices.ContainsFunc(p.Refers, func(s Symbol) bool { return symbols[s] }) {
				return
			}
			found[p], grown = true, true
			for _, decl := range p.Declares {
				next[decl.Symbol] = true
			}
		})
		if len(found) > most {
			return found, false
		}
		symbols = next
	}
	return found, true
}

// dependencies are the parts that some parts refer to, these themselves, and those that
// hold for all blocks.
func (d Directory) dependencies(of map[*Part]bool) map[*Part]bool {
	declares := map[Symbol][]*Part{}
	needed := map[*Part]bool{}
	var queue []*Part
	add := func(p *Part) {
		if !needed[p] {
			needed[p] = true
			queue = append(queue, p)
		}
	}
	d.each(func(p *Part) {
		general := false
		for _, decl := range p.Declares {
			declares[decl.Symbol] = append(declares[decl.Symbol], p)
			general = general || slices.Contains([]string{"fray", "provider", "controller"}, decl.Type)
		}
		if general || of[p] {
			add(p)
		}
	})
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, s := range p.Refers {
			for _, other := range declares[s] {
				add(other)
			}
		}
	}
	return needed
}
