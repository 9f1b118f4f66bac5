package render

import "slices"

// changed writes a value that becomes another: key by key where both are objects,
// on one line where both fit, element by element or line by line where they are of
// one kind, else the one after the other.
func (p *printer) changed(level int, head string, v [2]value, t tail) {
	before, after := v[0], v[1]
	if before.kind == valueString && after.kind == valueString && (isLong(before.text) || isLong(after.text)) {
		p.changedText(level, head, v, t)
		return
	}
	b, bok := before.inline()
	a, aok := after.inline()
	if before.secret && after.secret { // that it differs is all there is to say
		p.row(level, markChange, head, a, t.end, p.note(t.note))
		return
	}
	scalars := len(before.items)+len(after.items) == 0
	byKey := before.kind == valueObject && after.kind == valueObject // however short: what differs is what is looked for
	if bok && aok && (scalars || !byKey && p.fits(level, head, b+" -> "+a, t)) {
		p.row(level, markChange, head, b, p.paint(yellow, " -> "), a, t.end, p.note(t.note))
		return
	}
	switch {
	case before.kind == valueList && after.kind == valueList:
		p.row(level, markChange, head, "[", p.note(t.note))
		p.changedList(level+1, before, after)
		p.row(level, markSame, "]", t.end)
	case before.kind == valueObject && after.kind == valueObject:
		p.row(level, markChange, head, "{", p.note(t.note))
		p.changedObject(level+1, before, after)
		p.row(level, markSame, "}", t.end)
	default:
		p.whole(level, markRemove, labeledValue{head, before}, tail{end: t.end})
		p.whole(level, markAdd, labeledValue{head, after}, t)
	}
}

// changedText shows every line: those that stay say where in a program the
// others are.
func (p *printer) changedText(level int, head string, v [2]value, t tail) {
	before, after := linesOf(v[0].text), linesOf(v[1].text)
	edits := delta(before, after)
	if !slices.ContainsFunc(edits, func(e edit) bool { return e.mark != markSame }) {
		b, _ := v[0].inline() // they differ in what lines do not show
		a, _ := v[1].inline()
		p.row(level, markChange, head, b, p.paint(yellow, " -> "), a, t.end, p.note(t.note))
		return
	}
	p.row(level, markChange, head, "<<-EOT", p.note(t.note))
	for _, e := range edits {
		if e.mark == markAdd {
			p.textLine(level, e.mark, after[e.after])
		} else {
			p.textLine(level, e.mark, before[e.before])
		}
	}
	p.row(level, markSame, "EOT", t.end)
}

func (p *printer) changedList(level int, before, after value) {
	edits := paired(delta(before.raws(), after.raws()))
	hidden := 0
	for i, e := range edits {
		if e.mark == markSame && !p.verbose && !besideChange(edits, i) {
			hidden++
			continue
		}
		p.hidden(level, hidden, "element")
		hidden = 0
		item := labeledValue{}
		if e.mark == markAdd {
			item.value = after.items[e.after]
		} else {
			item.value = before.items[e.before]
		}
		if e.mark == markChange {
			p.changed(level, "", [2]value{item.value, after.items[e.after]}, tail{end: ","})
			continue
		}
		p.whole(level, e.mark, item, tail{end: ","})
	}
	p.hidden(level, hidden, "element")
}

// besideChange reports whether an unchanged element is the neighbour of a
// changed one, and so shows where that is.
func besideChange(edits []edit, i int) bool {
	return i > 0 && edits[i-1].mark != markSame || i+1 < len(edits) && edits[i+1].mark != markSame
}

func (p *printer) changedObject(level int, before, after value) {
	both := value{kind: valueObject}
	both.keys = slices.Concat(before.keys, after.keys)
	slices.Sort(both.keys)
	both.keys = slices.Compact(both.keys)
	both.items = make([]value, len(both.keys))
	hidden := 0
	for i, head := range both.heads() {
		b, hadBefore := before.field(both.keys[i])
		a, hasAfter := after.field(both.keys[i])
		switch {
		case !hasAfter:
			p.whole(level, markRemove, labeledValue{head, b}, tail{end: " -> null"})
		case !hadBefore:
			p.whole(level, markAdd, labeledValue{head, a}, tail{})
		case a.raw != b.raw:
			p.changed(level, head, [2]value{b, a}, tail{})
		case p.verbose:
			p.whole(level, markSame, labeledValue{head, a}, tail{})
		default:
			hidden++
		}
	}
	p.hidden(level, hidden, "attribute")
}

func (v value) field(key string) (value, bool) {
	if i, ok := slices.BinarySearch(v.keys, key); ok {
		return v.items[i], true
	}
	return value{}, false
}

func (v value) raws() []string {
	raws := make([]string, len(v.items))
	for i := range v.items {
		raws[i] = v.items[i].raw
	}
	return raws
}

// edit is one step from a list to another. before and after are indices, each
// only where the mark says that there is such an element.
type edit struct {
	mark          mark
	before, after int
}

// maxCells bounds the table that delta fills: beyond it, what differs is shown
// as removed and added as a whole.
const maxCells = 1 << 18

// delta is a shortest way from a to b, of removals and additions.
func delta(a, b []string) []edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var edits []edit
	for i := range start {
		edits = append(edits, edit{markSame, i, i})
	}
	for _, e := range middle(a[start:len(a)-end], b[start:len(b)-end]) {
		edits = append(edits, edit{e.mark, e.before + start, e.after + start})
	}
	for i := range end {
		edits = append(edits, edit{markSame, len(a) - end + i, len(b) - end + i})
	}
	return edits
}

// middle walks the table of the longest common subsequences of the suffixes.
func middle(a, b []string) []edit {
	if len(a)*len(b) > maxCells {
		return append(runOf(markRemove, len(a)), runOf(markAdd, len(b))...)
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width)
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	var edits []edit
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{markSame, i, j})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[(i+1)*width+j] >= common[i*width+j+1]):
			edits = append(edits, edit{markRemove, i, j})
			i++
		default:
			edits = append(edits, edit{markAdd, i, j})
			j++
		}
	}
	return edits
}

// paired turns as many removals as additions, between two elements that stay,
// into changes of one element each.
func paired(edits []edit) []edit {
	var out []edit
	for i := 0; i < len(edits); {
		if edits[i].mark == markSame {
			out = append(out, edits[i])
			i++
			continue
		}
		var removed, added []edit
		for ; i < len(edits) && edits[i].mark != markSame; i++ {
			if edits[i].mark == markRemove {
				removed = append(removed, edits[i])
			} else {
				added = append(added, edits[i])
			}
		}
		if len(removed) != len(added) {
			out = append(append(out, removed...), added...)
			continue
		}
		for k := range removed {
			out = append(out, edit{markChange, removed[k].before, added[k].after})
		}
	}
	return out
}

func runOf(m mark, n int) []edit {
	edits := make([]edit, n)
	for i := range edits {
		edits[i] = edit{m, i, i}
	}
	return edits
}
