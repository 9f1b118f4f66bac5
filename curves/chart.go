package curves

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is that of a chart, in characters.
type Size struct{ Width, Height int }

const (
	leastWidth, leastHeight = 24, 5
	// A character of the block Braille Patterns of Unicode has two columns of four dots.
	dotColumns, dotRows = 2, 4
	braille             = '\u2800'
)

// Chart draws a curve with its axes, as lines that end in a newline: the name with the last value, the curve, the steps.
func Chart(name string, points []Point, size Size) string {
	if len(points) == 0 {
		return name + ": no value yet\n"
	}
	size.Width, size.Height = max(size.Width, leastWidth), max(size.Height, leastHeight)
	size.Height -= 1 - size.Height%2 // so that one row is in the middle
	lo, hi := span(points)
	labels := map[int]string{0: number(hi), size.Height / 2: number(hi - (hi-lo)*float64(size.Height/2)/float64(size.Height-1)), size.Height - 1: number(lo)}
	gutter := 0
	for _, label := range labels {
		gutter = max(gutter, len(label))
	}
	columns := max(1, size.Width-gutter-2)
	rows := raster(points, lo, hi, columns, size.Height)
	last := points[len(points)-1]
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s at step %d\n", name, number(last.Value), last.Step)
	for i, row := range rows {
		tick := "│"
		if labels[i] != "" {
			tick = "┤"
		}
		fmt.Fprintf(&out, "%*s %s%s\n", gutter, labels[i], tick, strings.TrimRight(string(row), string(braille)))
	}
	fmt.Fprintf(&out, "%*s └%s\n", gutter, "", strings.Repeat("─", columns))
	first, end := strconv.FormatInt(points[0].Step, 10), ""
	if len(points) > 1 {
		end = strconv.FormatInt(last.Step, 10)
		end = fmt.Sprintf("%*s", max(len(end)+1, columns-len(first)), end)
	}
	fmt.Fprintf(&out, "%*s  %s%s\n", gutter, "", first, end)
	return out.String()
}

// span is the range of the values. Shares have one from 0 to 1, unless they change and are all small.
func span(points []Point) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range points {
		lo, hi = min(lo, p.Value), max(hi, p.Value)
	}
	switch {
	case lo >= 0 && hi <= 1 && (hi >= 0.5 || lo == hi):
		return 0, 1
	case lo == hi:
		around := max(1, math.Abs(lo)/2)
		return lo - around, hi + around
	}
	return lo, hi
}

// raster draws the curve with dots.
func raster(points []Point, lo, hi float64, columns, height int) [][]rune {
	rows := make([][]rune, height)
	for i := range rows {
		rows[i] = []rune(strings.Repeat(string(braille), columns))
	}
	wide, high := columns*dotColumns-1, height*dotRows-1
	first, last := points[0].Step, points[len(points)-1].Step
	place := func(p Point) (x, y int) {
		if last > first {
			x = int(math.Round(float64(p.Step-first) / float64(last-first) * float64(wide)))
		}
		return x, high - int(math.Round((p.Value-lo)/(hi-lo)*float64(high)))
	}
	dot := func(x, y int) {
		bits := [dotRows][dotColumns]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}
		rows[y/dotRows][x/dotColumns] |= bits[y%dotRows][x%dotColumns]
	}
	x, y := place(points[0])
	dot(x, y)
	for _, p := range points[1:] {
		nx, ny := place(p)
		for i, n := 1, max(nx-x, abs(ny-y)); i <= n; i++ {
			dot(x+(nx-x)*i/n, y+(ny-y)*i/n)
		}
		x, y = nx, ny
	}
	return rows
}

func abs(n int) int { return max(n, -n) }

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
