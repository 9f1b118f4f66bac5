package profile

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The shape of a flame graph, in pixels.
const (
	flameWidth  = 1200
	rowHeight   = 18
	headHeight  = 44
	glyphWidth  = 6.6 // of a monospaced font of 11 pixels
	leastWidth  = 0.4 // narrower frames are left out
	maxFrameLen = 300 // bytes of a name that are kept
)

// node is a call with all that it called.
type node struct {
	name     string
	weight   float64
	children map[string]*node
}

func (n *node) child(name string) *node {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	c := n.children[name]
	if c == nil {
		c = &node{name: name}
		n.children[name] = c
	}
	return c
}

// Flame draws a flame graph as an SVG image: a bar for each call, as wide as its share, above
// the calls that it made. It has no scripts and loads nothing; the full name and the share of a bar
// are its title.
func Flame(w io.Writer, title string, g Graph) error {
	root := &node{name: "all"}
	for _, s := range g.Stacks {
		if s.Weight <= 0 {
			continue
		}
		at := root
		at.weight += s.Weight
		for _, frame := range s.Frames {
			at = at.child(inert(frame))
			at.weight += s.Weight
		}
	}
	d := &drawing{out: bufio.NewWriter(w), unit: g.Unit, total: root.weight}
	height := headHeight + (1+depth(root, root.weight))*rowHeight + rowHeight/2
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="11">`+"\n",
		flameWidth, height, flameWidth, height)
	d.printf(`<rect width="%d" height="%d" fill="#fffdf7"/>`+"\n", flameWidth, height)
	d.printf(`<text x="8" y="18" font-size="13" font-weight="bold">%s</text>`+"\n", html.EscapeString(inert(title)))
	note := fmt.Sprintf("%s in all; a bar is as wide as its share, its callers are above it", amount(root.weight, g.Unit))
	if root.weight == 0 {
		note = "no samples: the process ran nothing while it was measured"
	}
	d.printf(`<text x="8" y="35" fill="#555">%s</text>`+"\n", html.EscapeString(note))
	if root.weight > 0 {
		d.draw(root, 0, 0)
	}
	d.printf("</svg>\n")
	return d.out.Flush()
}

// drawing is a flame graph that is being written. Errors are kept by its writer.
type drawing struct {
	out   *bufio.Writer
	unit  string
	total float64
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

func (d *drawing) draw(n *node, x float64, level int) {
	width := n.weight / d.total * flameWidth
	if width < leastWidth {
		return
	}
	y := headHeight + level*rowHeight
	label := n.name
	if room := int((width - 4) / glyphWidth); utf8.RuneCountInString(label) > room {
		label = string([]rune(label)[:max(0, room-1)])
		if room > 2 {
			label += "…"
		} else {
			label = ""
		}
	}
	d.printf(`<g><title>%s: %s, %.1f%%</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s" stroke="#fffdf7" stroke-width="0.5"/>`,
		html.EscapeString(n.name), html.EscapeString(amount(n.weight, d.unit)), 100*n.weight/d.total, x, y, width, rowHeight-1, color(n.name))
	if label != "" {
		d.printf(`<text x="%.2f" y="%d">%s</text>`, x+2, y+12, html.EscapeString(label))
	}
	d.printf("</g>\n")
	for _, c := range heaviest(n) {
		d.draw(c, x, level+1)
		x += c.weight / d.total * flameWidth
	}
}

func heaviest(n *node) []*node {
	return slices.SortedFunc(maps.Values(n.children), func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
}

// depth is how many levels of calls are drawn below n.
func depth(n *node, total float64) int {
	deepest := 0
	for _, c := range n.children {
		if c.weight/total*flameWidth >= leastWidth {
			deepest = max(deepest, 1+depth(c, total))
		}
	}
	return deepest
}

// color is a warm one that a name always has.
func color(name string) string {
	sum := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		sum = (sum ^ uint32(name[i])) * 16777619
	}
	return fmt.Sprintf("hsl(%d,80%%,%d%%)", 8+sum%45, 62+sum/64%14)
}

// amount is a weight for people.
func amount(weight float64, unit string) string {
	switch unit {
	case "seconds":
		return fmt.Sprintf("%.2f s", weight)
	case "bytes":
		const mebi = 1 << 20
		if weight >= mebi {
			return fmt.Sprintf("%.1f MiB", weight/mebi)
		}
		return fmt.Sprintf("%.1f KiB", weight/1024)
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %s", weight, unit))
}

// inert is a name without what a terminal or XML 1.0 would act on or refuse, and not overly long.
func inert(name string) string {
	if len(name) > maxFrameLen {
		name = name[:maxFrameLen] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == 0xFFFE || r == 0xFFFF {
			return '�'
		}
		return r
	}, printable(name))
}
