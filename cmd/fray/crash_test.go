package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// allPoints asks for the slow, complete form of the proofs.
func allPoints() bool { return os.Getenv("FRAY_TEST_SOAK") != "" }

// TestCrashApply kills an apply at its store and provider calls and shows that
// the next one ends in the same world: nothing left behind, nothing started
// twice, nothing touched that stays the same. Of the calls of each kind the
// first is tried, on the way there, or back if it comes only there: half of these in a directory,
// and half of the others in a bucket. With FRAY_TEST_SOAK, all, on both ways.
func TestCrashApply(t *testing.T) {
	t.Run("directory", func(t *testing.T) { proveCrashes(t, nil, some(2, 1)) })
	t.Run("bucket", func(t *testing.T) { proveCrashes(t, emulatorWith(t, false), some(4, 2)) })
}

// choice takes the points to try, by side, from all.
type choice func(points [2][]string) [2][]int

// bothWays is the first point of each kind on each way.
func bothWays(points [2][]string) [2][]int {
	return [2][]int{choosePoints(points[0], 1), choosePoints(points[1], 1)}
}

// onceEach is the first point of each kind on the way there, and back if it comes only there.
func onceEach(points [2][]string) [2][]int {
	left, known := bothWays(points), map[string]bool{}
	for _, point := range points[1] {
		known[pointKind(point)] = true
	}
	left[0] = slices.DeleteFunc(left[0], func(n int) bool { return known[pointKind(points[0][n-1])] })
	return left
}

// some are the points of onceEach whose numbers leave a rest when divided by n.
func some(n, rest int) choice {
	return func(points [2][]string) [2][]int {
		left := onceEach(points)
		for side, numbers := range left {
			i := 0
			left[side] = slices.DeleteFunc(numbers, func(int) bool { i++; return i%n != rest })
		}
		return left
	}
}

// crashWorkers is how many stacks are crashed at once: they mostly wait, for
// the time between two writes of the state and for leases that lapse.
const crashWorkers = 6

// proveCrashes tries the points that are chosen, or with FRAY_TEST_SOAK all.
func proveCrashes(t *testing.T, bucket *emulator, chosen choice) {
	proof := &crashProof{}
	model := newCrashStack(t, bucket)
	if _, err := model.uninterrupted(t, 0); err != nil {
		t.Fatal(err)
	}
	for _, to := range []side{1, 0} {
		points, err := model.uninterrupted(t, to)
		if err != nil {
			t.Fatal(err)
		}
		proof.points[to] = points
		if err := within(proofPatience, func() error {
			proof.want[to], err = model.picture(t, to)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	endProcesses(model.dir)
	if proof.left = chosen(proof.points); allPoints() {
		proof.left = [2][]int{choosePoints(proof.points[0], math.MaxInt), choosePoints(proof.points[1], math.MaxInt)}
	}
	t.Logf("%d crash points (%d there, %d back), %d of them tried", len(proof.points[0])+len(proof.points[1]),
		len(proof.points[1]), len(proof.points[0]), len(proof.left[0])+len(proof.left[1]))
	var workers sync.WaitGroup
	for range crashWorkers {
		workers.Go(func() { proof.work(t, bucket) })
	}
	workers.Wait()
	t.Logf("%d applies were killed, %d had fewer calls than that", proof.killed, proof.survived)
	if proof.killed < proof.survived {
		t.Errorf("only %d applies were killed and %d were not", proof.killed, proof.survived)
	}
}

// choosePoints returns the numbers of the points to try, from 1: so many of each
// kind, evenly spread from the first to the last.
func choosePoints(points []string, ofKind int) []int {
	kinds := map[string][]int{}
	for i, p := range points {
		kind := pointKind(p)
		kinds[kind] = append(kinds[kind], i+1)
	}
	var chosen []int
	for _, numbers := range kinds {
		n := min(ofKind, len(numbers))
		for i := range n {
			chosen = append(chosen, numbers[i*(len(numbers)-1)/max(n-1, 1)])
		}
	}
	slices.Sort(chosen)
	return chosen
}

func TestChoosePoints(t *testing.T) {
	points := []string{"1 before create slice", "2 after create slice", "3 before create slice", "4 before create slice", "5 before create slice", "6 before create slice"}
	for ofKind, want := range map[int][]int{1: {1, 2}, 2: {1, 2, 6}, 3: {1, 2, 4, 6}, math.MaxInt: {1, 2, 3, 4, 5, 6}} {
		if got := choosePoints(points, ofKind); !slices.Equal(got, want) {
			t.Errorf("%d of each kind: got %v, want %v", ofKind, got, want)
		}
	}
}

// pointKind is a point without its number and without what tells slices apart:
// "before put assign", "after create slice".
func pointKind(point string) string {
	words := strings.Fields(point)[1:]
	if len(words) < 3 || words[0] == "at" {
		return strings.Join(words, " ")
	}
	object, _, folder := strings.Cut(words[2], "/")
	if !folder && !strings.HasSuffix(object, ".json") {
		object = "slice"
	}
	return words[0] + " " + words[1] + " " + object
}

// crashProof is what is to be tried and shown, shared by the workers.
type crashProof struct {
	points [2][]string // of an apply that goes to a side
	want   [2]string   // the picture of a side

	mu               sync.Mutex
	left             [2][]int
	killed, survived int
}

// next takes a point of going to a side, 0 if none is left, and says whether
// any is left at all.
func (p *crashProof) next(to side) (point int, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.left[to]) > 0 {
		point, p.left[to] = p.left[to][0], p.left[to][1:]
	}
	return point, point > 0 || len(p.left[to.other()]) > 0
}

func (p *crashProof) count(killed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if killed {
		p.killed++
	} else {
		p.survived++
	}
}

// work crashes a stack on its way there and back until no point is left. One
// that a failure has left in disorder is given up for a new one.
func (p *crashProof) work(t *testing.T, bucket *emulator) {
	var stack *crashStack
	var to side
	for t.Context().Err() == nil {
		if stack == nil {
			stack, to = newCrashStack(t, bucket), 1
			if _, err := stack.uninterrupted(t, 0); err != nil {
				t.Error(err)
				return
			}
		}
		point, more := p.next(to)
		if !more {
			endProcesses(stack.dir)
			return
		}
		if err := p.try(t, stack, to, point); err != nil {
			name := "none"
			if point > 0 {
				name = p.points[to][point-1]
			}
			t.Errorf("to side %d, point %s: %v", to, name, err)
			endProcesses(stack.dir)
			stack = nil
			continue
		}
		to = to.other()
	}
}

// try kills an apply that goes to a side at a point, and lets the next one go
// on. Point 0 kills none.
func (p *crashProof) try(t *testing.T, stack *crashStack, to side, point int) error {
	if point == 0 {
		_, err := stack.uninterrupted(t, to)
		return err
	}
	stack.turn(t, to)
	killed, err := stack.crash(t, point)
	if err != nil {
		return err
	}
	p.count(killed)
	if err := stack.goesOn(t); err != nil {
		return err
	}
	complaint := within(proofPatience, func() error { // what was told to end may take a moment
		got, err := stack.picture(t, to)
		if err == nil && got != p.want[to] {
			err = fmt.Errorf("the world differs; got:\n%s\nwant:\n%s", got, p.want[to])
		}
		return err
	})
	after, err := stack.run(t, nil, "plan", "--detailed-exitcode")
	if err == nil && after.code != 0 {
		err = fmt.Errorf("the plan after it is not empty: %v", after)
	}
	return errors.Join(complaint, err)
}
