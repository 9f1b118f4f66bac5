package trajectory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/rl"
)

// overhead is what a trajectory takes beside its payload, in bytes: measured on headers with one key, one
// score and ten fields.
const overhead = 512

// sample is one trajectory.
type sample struct {
	header  rl.Header
	payload []byte
	size    int64
	group   int64
}

func sizeOf(h rl.Header, payload []byte) int64 {
	return int64(len(payload)+overhead) + 32*int64(len(h.Fields)+len(h.Keys)+len(h.Scores))
}

// group is one that has not reached its size.
type group struct {
	number  int64
	samples []*sample
}

// store has the trajectories of one model. Without keys each is a group of its own if group_size is 1. With
// several keys a group is a leaf of their hierarchy: all of its keys agree.
type store struct {
	open     map[string]*group
	finished []*sample      // in the order in which their groups were completed
	partial  map[int64]bool // groups that were released before they were complete
}

func (s *store) count() int {
	n := len(s.finished)
	for _, g := range s.open {
		n += len(g.samples)
	}
	return n
}

// incomplete are the open groups in the order in which they began.
func (s *store) incomplete() []*group {
	out := make([]*group, 0, len(s.open))
	for _, g := range s.open {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *group) int { return cmp.Compare(a.number, b.number) })
	return out
}

// pop removes the first n.
func (s *store) pop(n int) []*sample {
	out := slices.Clone(s.finished[:n])
	clear(s.finished[:n])
	s.finished = s.finished[n:]
	if len(s.finished) == 0 {
		s.finished = nil
	}
	return out
}

// groupKey is the path of a group in the hierarchy of keys. The string "1" and the number 1 are two values.
func groupKey(keys []string, values map[string]any) (string, error) {
	if len(keys) == 0 {
		return "", nil
	}
	var b strings.Builder
	for _, key := range keys {
		value, ok := values[key]
		if !ok {
			return "", fmt.Errorf("the trajectory has no group key %q, which key_list names", key)
		}
		switch v := value.(type) {
		case string:
			b.WriteString(strconv.Quote(v))
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case uint64:
			b.WriteString(strconv.FormatUint(v, 10))
		case int:
			b.WriteString(strconv.Itoa(v))
		default:
			return "", fmt.Errorf("group key %q is of type %T: want a string or an integer", key, value)
		}
		b.WriteByte('/')
	}
	return b.String(), nil
}

// check returns what a header has that no journal could keep.
func check(h rl.Header) error {
	for name, score := range h.Scores {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("score %q is %v: want a finite number", name, score)
		}
	}
	if t := h.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		return fmt.Errorf("the temperature is %v: want a finite number", *t)
	}
	for name := range h.Keys {
		if _, err := groupKey([]string{name}, h.Keys); err != nil {
			return err
		}
	}
	return nil
}

// place is where a task stands in the data.
type place struct {
	known            bool
	pass, index, run int
}

// placeOf reads a task ID.
func placeOf(taskID string) place {
	parts := strings.Split(taskID, "/")
	if len(parts) != 3 {
		return place{}
	}
	var numbers [3]int
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return place{}
		}
		numbers[i] = n
	}
	return place{known: true, pass: numbers[0], index: numbers[1], run: numbers[2]}
}

// compare orders places; unknown ones come last.
func (a place) compare(b place) int {
	if a.known != b.known {
		if a.known {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.pass, b.pass), cmp.Compare(a.index, b.index), cmp.Compare(a.run, b.run))
}

// inDataOrder sorts the samples of each group, and the groups by their first, as their tasks stand in the
// data: a batch of all that was loaded does not depend on which worker was faster.
func inDataOrder(samples []*sample) {
	first := map[int64]place{}
	places := map[*sample]place{}
	for _, x := range samples {
		at := placeOf(x.header.TaskID)
		places[x] = at
		if best, ok := first[x.group]; !ok || at.compare(best) < 0 {
			first[x.group] = at
		}
	}
	slices.SortStableFunc(samples, func(a, b *sample) int {
		if a.group != b.group {
			return cmp.Or(first[a.group].compare(first[b.group]), cmp.Compare(a.group, b.group))
		}
		return places[a].compare(places[b])
	})
}

// FieldsError is a batch whose trajectories have different fields, so that no columns can be made of it.
type FieldsError struct {
	ModelTag      rl.ModelTag
	Task, Other   string
	Missing, More []string // fields that Other lacks, and that only Other has
}

func (e *FieldsError) Error() string {
	return fmt.Sprintf("model %q: trajectories of one batch have different fields: that of task %q lacks [%s] and has [%s] beyond that of task %q; put the same fields in each trajectory, or flush the model",
		e.ModelTag, e.Other, strings.Join(e.Missing, " "), strings.Join(e.More, " "), e.Task)
}

// sameFields returns a FieldsError if not all samples have the fields of the first.
func sameFields(tag rl.ModelTag, samples []*sample) error {
	var known *sample
	for _, x := range samples {
		switch {
		case x.header.Fields == nil: // not known
		case known == nil:
			known = x
		case !slices.Equal(known.header.Fields, x.header.Fields):
			return &FieldsError{
				ModelTag: tag, Task: known.header.TaskID, Other: x.header.TaskID,
				Missing: without(known.header.Fields, x.header.Fields), More: without(x.header.Fields, known.header.Fields),
			}
		}
	}
	return nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}
