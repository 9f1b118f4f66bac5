package chaos

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// kind is a closed set of what a caller was told of a call.
type kind string

const (
	outcomeOK    kind = "ok"    // it returned
	outcomeMaybe kind = "maybe" // it may have been executed
	outcomeNot   kind = "not"   // it was not executed
	outcomeLeft  kind = "left"  // its loop was left
	outcomeOther kind = "other" // what must not be
)

// outcome is what became of a call, as its caller saw it.
type outcome struct {
	caller  string
	seq     int
	kind    kind
	code    string // of the error; "-"
	life    string // of the actor that ran it; "-"
	count   int    // its number in that life
	took    time.Duration
	timeout time.Duration
	retries int // how often it may run again
	items   int // of the stream that it asked for, noStream: of none
	window  int // how many items the method may be ahead of the loop
	pickled bool
}

// noStream is how many items a call asks for that is answered by one result.
const noStream = -1

func (o outcome) line() string {
	return fmt.Sprintf("%s %d %s %s %s %d %d %d %d %d %d %t\n",
		o.caller, o.seq, o.kind, o.code, o.life, o.count, o.took.Milliseconds(), o.timeout.Milliseconds(), o.retries, o.items, o.window, o.pickled)
}

func outcomeOf(line string) (o outcome, err error) {
	var took, timeout int64
	_, err = fmt.Sscan(line, &o.caller, &o.seq, &o.kind, &o.code, &o.life, &o.count, &took, &timeout, &o.retries, &o.items, &o.window, &o.pickled)
	o.took, o.timeout = time.Duration(took)*time.Millisecond, time.Duration(timeout)*time.Millisecond
	return o, err
}

// execution is one run of a method, as the actor saw it.
type execution struct {
	caller string
	seq    int
	life   string
	count  int
}

func executionOf(line string) (e execution, err error) {
	_, err = fmt.Sscan(line, &e.caller, &e.seq, &e.life, &e.count)
	return e, err
}

// callID is one call of one caller.
type callID struct {
	caller string
	seq    int
}

// late is how long after its deadline a call may be without an outcome: the machines are slow.
const late = 30 * time.Second

// expected are the codes of errors that chaos may lead to, or a method that is to fail.
func expected(o outcome) bool {
	if o.pickled && o.kind == outcomeNot && slices.Contains([]string{"encoding", "unknown_method"}, o.code) {
		return true // there are actors in Go as well, and connections that prove nothing
	}
	return o.code == "application" && o.retries > 0 || slices.Contains([]string{"maybe_executed", "deadline", "cancelled", "unavailable", "stopping", "stale", "busy", "unknown_actor"}, o.code)
}

// judge names each outcome that must not be, in the order of what happened.
func judge(executions []execution, outcomes []outcome) []string {
	var wrong []string
	ran := map[callID][]execution{}
	for _, e := range executions {
		id := callID{e.caller, e.seq}
		ran[id] = append(ran[id], e)
	}
	known := map[callID]bool{}
	for _, o := range outcomes {
		id := callID{o.caller, o.seq}
		if known[id] {
			wrong = append(wrong, fmt.Sprintf("call %v has two outcomes", id))
		}
		known[id] = true
		if problem := objection(o, ran[id]); problem != "" {
			wrong = append(wrong, fmt.Sprintf("call %v (%s, %s): %s", id, o.kind, o.code, problem))
		}
	}
	for id := range ran {
		if !known[id] {
			wrong = append(wrong, fmt.Sprintf("call %v was executed and has no outcome", id))
		}
	}
	return append(wrong, disorder(executions)...)
}

// objection says what is wrong with what became of one call, "" if nothing.
func objection(o outcome, ran []execution) string {
	if o.took > o.timeout+late {
		return fmt.Sprintf("it took %s with a timeout of %s", o.took, o.timeout)
	}
	if len(ran) > 1+o.retries {
		return fmt.Sprintf("it was executed %d times, with %d retries: %v", len(ran), o.retries, ran)
	}
	if o.code != "-" && !expected(o) {
		return "the error is none that chaos leads to"
	}
	switch o.kind {
	case outcomeOK:
		if len(ran) == 0 {
			return "it was never executed"
		}
		if o.items != 0 && !slices.ContainsFunc(ran, func(e execution) bool { return e.life == o.life && e.count == o.count }) {
			return fmt.Sprintf("it returned %d of %s, and was %v", o.count, o.life, ran)
		}
	case outcomeMaybe:
		if o.code == "application" && len(ran) == 0 {
			return "it failed without being executed"
		}
	case outcomeNot:
		if len(ran) != 0 {
			return fmt.Sprintf("it was executed: %v", ran)
		}
	case outcomeLeft: // it may have run or not
	case outcomeOther:
		return "it returned something else"
	}
	return ""
}

// disorder names lives that did not count by one, and calls that ran after later
// ones of their caller in the same life. Later runs of a call that may run again come when they do.
func disorder(executions []execution) []string {
	type view struct{ caller, life string }
	var wrong []string
	counts, last, ran := map[string]int{}, map[view]int{}, map[callID]bool{}
	for _, e := range executions {
		if counts[e.life]++; counts[e.life] != e.count {
			wrong = append(wrong, fmt.Sprintf("execution %d of %s says that it is number %d", counts[e.life], e.life, e.count))
		}
		v, id := view{e.caller, e.life}, callID{e.caller, e.seq}
		if ran[id] {
			continue
		}
		ran[id] = true
		if e.seq < last[v] {
			wrong = append(wrong, fmt.Sprintf("call %d of %s ran in %s after its call %d", e.seq, e.caller, e.life, last[v]))
		}
		last[v] = max(last[v], e.seq)
	}
	return wrong
}

// gaps names callers who lost count: each call has an outcome.
func gaps(outcomes []outcome) []string {
	highest, n := map[string]int{}, map[string]int{}
	for _, o := range outcomes {
		highest[o.caller] = max(highest[o.caller], o.seq)
		n[o.caller]++
	}
	var wrong []string
	for _, c := range slices.Sorted(maps.Keys(highest)) {
		if n[c] != highest[c] {
			wrong = append(wrong, fmt.Sprintf("%s made %d calls and has %d outcomes", c, highest[c], n[c]))
		}
	}
	return wrong
}

// tally counts outcomes by what they are.
func tally(outcomes []outcome) map[string]int {
	found := map[string]int{}
	for _, o := range outcomes {
		name := string(o.kind)
		if o.code != "-" {
			name += " " + o.code
		}
		found[name]++
	}
	return found
}

// readLines reads a file of records; one that is not there is empty.
func readLines[T any](path string, read func(string) (T, error)) ([]T, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []T
	s := bufio.NewScanner(f)
	for s.Scan() {
		one, err := read(s.Text())
		if err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", path, s.Text(), err)
		}
		all = append(all, one)
	}
	return all, s.Err()
}

func TestJudge(t *testing.T) {
	told := func(seq int, k kind, code string) outcome {
		o := outcome{caller: "a", seq: seq, kind: k, code: code, life: "-", timeout: time.Second, items: noStream}
		if k == outcomeOK {
			o.life, o.count = "x", seq
		}
		return o
	}
	ok := func(seq int) outcome { return told(seq, outcomeOK, "-") }
	retried := func(o outcome, retries int) outcome {
		o.retries = retries
		return o
	}
	pickled := func(o outcome) outcome {
		o.pickled = true
		return o
	}
	ran := func(seq, count int) execution { return execution{"a", seq, "x", count} }
	elsewhere := execution{"a", 1, "y", 1}
	slow := ok(1)
	slow.took = slow.timeout + 2*late
	tests := []struct {
		name       string
		executions []execution
		outcomes   []outcome
		want       string // "": nothing is wrong
	}{
		{"all is well", []execution{ran(1, 1), ran(2, 2)}, []outcome{ok(1), ok(2)}, ""},
		{"maybe, and it did", []execution{ran(1, 1)}, []outcome{told(1, outcomeMaybe, "maybe_executed")}, ""},
		{"maybe, and it did not", nil, []outcome{told(1, outcomeMaybe, "deadline")}, ""},
		{"not, and it did not", nil, []outcome{told(1, outcomeNot, "unavailable")}, ""},
		{"twice in one life", []execution{ran(1, 1), ran(1, 2)}, []outcome{ok(1)}, "executed 2 times"},
		{"twice in two lives", []execution{ran(1, 1), elsewhere}, []outcome{ok(1)}, "executed 2 times"},
		{"maybe, and twice", []execution{ran(1, 1), elsewhere}, []outcome{told(1, outcomeMaybe, "maybe_executed")}, "executed 2 times"},
		{"ok, and never", nil, []outcome{ok(1)}, "never executed"},
		{"twice, as it may", []execution{ran(1, 1), elsewhere}, []outcome{retried(ok(1), 1)}, ""},
		{"three times with one retry", []execution{ran(1, 1), ran(1, 2), elsewhere}, []outcome{retried(ok(1), 1)}, "executed 3 times, with 1 retries"},
		{"failed each time", []execution{ran(1, 1), ran(1, 2)}, []outcome{retried(told(1, outcomeMaybe, "application"), 1)}, ""},
		{"failed more often than it may", []execution{ran(1, 1), ran(1, 2)}, []outcome{retried(told(1, outcomeMaybe, "application"), 0)}, "executed 2 times, with 0 retries"},
		{"failed, and never ran", nil, []outcome{retried(told(1, outcomeMaybe, "application"), 1)}, "without being executed"},
		{"an error of its own, unasked", []execution{ran(1, 1)}, []outcome{told(1, outcomeMaybe, "application")}, "none that chaos leads to"},
		{"not, and it did", []execution{ran(1, 1)}, []outcome{told(1, outcomeNot, "unavailable")}, "it was executed"},
		{"no outcome", []execution{ran(1, 1)}, nil, "has no outcome"},
		{"two outcomes", []execution{ran(1, 1)}, []outcome{ok(1), ok(1)}, "two outcomes"},
		{"another's answer", []execution{{"a", 1, "x", 1}, {"a", 2, "y", 1}}, []outcome{ok(1), ok(2)}, "it returned 2 of x"},
		{"out of order", []execution{ran(2, 1), ran(1, 2)}, []outcome{told(1, outcomeMaybe, "deadline"), told(2, outcomeMaybe, "deadline")}, "after its call 2"},
		{"again after a later one", []execution{ran(1, 1), ran(2, 2), ran(1, 3)}, []outcome{retried(told(1, outcomeMaybe, "application"), 1), ok(2)}, ""},
		{"in order in each life", []execution{ran(2, 1), elsewhere}, []outcome{told(1, outcomeMaybe, "deadline"), told(2, outcomeMaybe, "deadline")}, ""},
		{"a number that is missing", []execution{ran(1, 2)}, []outcome{told(1, outcomeMaybe, "deadline")}, "number 2"},
		{"late", []execution{ran(1, 1)}, []outcome{slow}, "with a timeout"},
		{"not carried", nil, []outcome{told(1, outcomeNot, "encoding")}, "none that chaos leads to"},
		{"a pickle that is not carried", nil, []outcome{pickled(told(1, outcomeNot, "encoding"))}, ""},
		{"a pickle that ran and is not carried", []execution{ran(1, 1)}, []outcome{pickled(told(1, outcomeMaybe, "encoding"))}, "none that chaos leads to"},
		{"an error of another kind", nil, []outcome{told(1, outcomeNot, "malformed")}, "none that chaos leads to"},
		{"no typed error", nil, []outcome{told(1, outcomeOther, "-")}, "something else"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(judge(test.executions, test.outcomes), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
	if got := gaps([]outcome{ok(1), ok(3)}); len(got) != 1 {
		t.Errorf("calls 1 and 3 have outcomes: found %q, want that one is missing", got)
	}
}
