// Package curves reads metrics out of what a program writes, and draws them in a terminal. A line that has metrics
// begins with "step N"; two spaces, a name, a space and a number follow for each metric:
//
//	step 10  val/exact_match 0.645  val/reward 0.8
//
// so writes the console logger of rl/experiment, and any program may. It leaves out where lines come from.
//
// Start with [Set].
package curves

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxNames is how many metrics a set has at most: those that came first.
	maxNames = 64
	// maxPoints is how many points a curve has at most. Of more, the last one of every few steps is kept.
	maxPoints = 1000
	// maxName is the length of the longest name, in bytes.
	maxName = 128
)

// Metric is what a line has of one metric.
type Metric struct {
	Name  string
	Value float64
}

// Point is the value of a metric at a step.
type Point struct {
	Step  int64
	Value float64
}

// Parse reads a line that has metrics; false if it has none. What is no finite number is left out.
func Parse(line string) (step int64, metrics []Metric, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimRight(line, " \r\n"), "step ")
	if !ok {
		return 0, nil, false
	}
	parts := strings.Split(rest, "  ")
	step, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return 0, nil, false
	}
	for _, part := range parts[1:] {
		name, text, found := strings.Cut(part, " ")
		value, err := strconv.ParseFloat(text, 64)
		if found && err == nil && name != "" && len(name) <= maxName && !math.IsNaN(value) && !math.IsInf(value, 0) {
			metrics = append(metrics, Metric{Name: name, Value: value})
		}
	}
	return step, metrics, len(metrics) > 0
}

// Set is the curves of all metrics of a log. It is not safe for concurrent use.
type Set struct{ curves map[string]*curve }

// curve is a metric's points by step. Of the steps that have the same quotient by stride one is kept.
type curve struct {
	stride int64
	points []Point
}

// Add takes a line, and reports whether it had metrics. A step that comes again takes the place of the former one: so do the
// steps of a run that went back to a checkpoint.
func (s *Set) Add(line string) bool {
	step, metrics, ok := Parse(line)
	if !ok {
		return false
	}
	if s.curves == nil {
		s.curves = map[string]*curve{}
	}
	for _, m := range metrics {
		c := s.curves[m.Name]
		if c == nil {
			if len(s.curves) == maxNames {
				continue
			}
			c = &curve{stride: 1}
			s.curves[m.Name] = c
		}
		c.add(Point{Step: step, Value: m.Value})
	}
	return true
}

func (c *curve) add(p Point) {
	bucket := func(q Point) int64 { return floor(q.Step, c.stride) }
	i, found := slices.BinarySearchFunc(c.points, bucket(p), func(q Point, b int64) int { return cmp.Compare(bucket(q), b) })
	switch {
	case !found:
		c.points = slices.Insert(c.points, i, p)
	case p.Step >= c.points[i].Step:
		c.points[i] = p
	}
	for len(c.points) > maxPoints {
		c.stride *= 2
		kept := c.points[:0]
		for _, q := range c.points {
			if n := len(kept); n > 0 && bucket(kept[n-1]) == bucket(q) {
				kept[n-1] = q
			} else {
				kept = append(kept, q)
			}
		}
		c.points = kept
	}
}

// floor divides and rounds down, below 0 too.
func floor(n, by int64) int64 {
	if n < 0 {
		return -((-n + by - 1) / by)
	}
	return n / by
}

// Names are those of the metrics, sorted: those of validation first, which begin with "val/".
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.curves))
	for name := range s.curves {
		names = append(names, name)
	}
	isOther := func(name string) int {
		if strings.HasPrefix(name, "val/") {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(isOther(a), isOther(b)), cmp.Compare(a, b)) })
	return names
}

// Points are those of a metric by step; none if there is no such metric.
func (s *Set) Points(name string) []Point {
	if c := s.curves[name]; c != nil {
		return slices.Clone(c.points)
	}
	return nil
}
