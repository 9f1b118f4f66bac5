package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// item is one item of a stream, as the actor made it or the caller took it.
type item struct {
	caller string
	seq    int
	life   string
	count  int // which execution of that life
	number int // from 1 on
}

func (i item) line() string {
	return fmt.Sprintf("%s %d %s %d %d\n", i.caller, i.seq, i.life, i.count, i.number)
}

func itemOf(line string) (i item, err error) {
	_, err = fmt.Sscan(line, &i.caller, &i.seq, &i.life, &i.count, &i.number)
	return i, err
}

func (i item) execution() execution { return execution{i.caller, i.seq, i.life, i.count} }

func streamsOf(outcomes []outcome) int {
	n := 0
	for _, o := range outcomes {
		if o.items != noStream {
			n++
		}
	}
	return n
}

// anyWindow is how many items a method may be ahead of its caller where that asks for nothing else.
const anyWindow = 1000

// judgeStreams names what is wrong with the items of streams.
func judgeStreams(executions []execution, outcomes []outcome, produced, received []item) []string {
	made, wrong := production(executions, produced)
	taken := map[callID][]item{}
	for _, i := range received {
		id := callID{i.caller, i.seq}
		taken[id] = append(taken[id], i)
	}
	asked := map[callID]outcome{}
	for _, o := range outcomes {
		if o.items == noStream {
			continue
		}
		id := callID{o.caller, o.seq}
		asked[id] = o
		if problem := misreceived(o, taken[id], made); problem != "" {
			wrong = append(wrong, fmt.Sprintf("stream %v (%s, %s): %s", id, o.kind, o.code, problem))
		}
	}
	for e, n := range made {
		id := callID{e.caller, e.seq}
		o, known := asked[id]
		if !known {
			wrong = append(wrong, fmt.Sprintf("items were produced by %v, which is no stream", e))
			continue
		}
		window := o.window
		if window == 0 {
			window = anyWindow
		}
		if n > o.items || n > len(taken[id])+window {
			wrong = append(wrong, fmt.Sprintf("execution %v produced %d items of %d, with a window of %d, and %d were taken", e, n, o.items, window, len(taken[id])))
		}
	}
	for id := range taken {
		if _, known := asked[id]; !known {
			wrong = append(wrong, fmt.Sprintf("items of %v were received, and it has no outcome", id))
		}
	}
	return wrong
}

// production is how many items each execution produced, and names those that it did not produce in order, once each.
func production(executions []execution, produced []item) (made map[execution]int, wrong []string) {
	ran := map[execution]bool{}
	for _, e := range executions {
		ran[e] = true
	}
	made = map[execution]int{}
	for _, i := range produced {
		e := i.execution()
		if !ran[e] {
			wrong = append(wrong, fmt.Sprintf("item %d was produced by %v, which was not executed", i.number, e))
		}
		if made[e]++; made[e] != i.number {
			wrong = append(wrong, fmt.Sprintf("execution %v produced item %d where %d is due", e, i.number, made[e]))
		}
	}
	return made, wrong
}

// misreceived says what is wrong with the items that a loop took, "" if nothing.
func misreceived(o outcome, taken []item, made map[execution]int) string {
	for n, i := range taken {
		switch {
		case i.execution() != taken[0].execution():
			return fmt.Sprintf("it had items of two executions: %v and %v", taken[0].execution(), i.execution())
		case i.number != n+1:
			return fmt.Sprintf("item %d came where %d is due", i.number, n+1)
		case i.number > made[i.execution()]:
			return fmt.Sprintf("item %d came, of which %v has produced %d", i.number, i.execution(), made[i.execution()])
		}
	}
	switch {
	case o.kind == outcomeNot && len(taken) > 0:
		return fmt.Sprintf("it was not executed, and %d items came", len(taken))
	case (o.kind == outcomeOK || o.code == "application") && len(taken) != o.items:
		return fmt.Sprintf("it ended after %d items of %d", len(taken), o.items)
	}
	return ""
}

func TestJudgeStreams(t *testing.T) {
	stream := func(k kind, code string, items int) outcome {
		return outcome{caller: "a", seq: 1, kind: k, code: code, life: "x", count: 1, timeout: time.Second, items: items, window: 3}
	}
	ok := stream(outcomeOK, "-", 3)
	once, elsewhere := execution{"a", 1, "x", 1}, execution{"a", 1, "y", 1}
	items := func(e execution, numbers ...int) []item {
		var all []item
		for _, n := range numbers {
			all = append(all, item{e.caller, e.seq, e.life, e.count, n})
		}
		return all
	}
	tests := []struct {
		name               string
		executions         []execution
		outcomes           []outcome
		produced, received []item
		want               string // "": nothing is wrong
	}{
		{"all is well", []execution{once}, []outcome{ok}, items(once, 1, 2, 3), items(once, 1, 2, 3), ""},
		{"no items", []execution{once}, []outcome{stream(outcomeOK, "-", 0)}, nil, nil, ""},
		{"left", []execution{once}, []outcome{stream(outcomeLeft, "-", 9)}, items(once, 1, 2, 3), items(once, 1), ""},
		{"left, and not ended", []execution{once}, []outcome{stream(outcomeLeft, "-", 9)}, items(once, 1, 2, 3, 4, 5), items(once, 1), "with a window of 3"},
		{"cut short, and known to be", []execution{once}, []outcome{stream(outcomeMaybe, "maybe_executed", 3)}, items(once, 1, 2), items(once, 1), ""},
		{"failed at its end", []execution{once}, []outcome{stream(outcomeMaybe, "application", 3)}, items(once, 1, 2, 3), items(once, 1, 2, 3), ""},
		{"failed before its end", []execution{once}, []outcome{stream(outcomeMaybe, "application", 3)}, items(once, 1, 2, 3), items(once, 1, 2), "ended after 2 items of 3"},
		{"lost at the end", []execution{once}, []outcome{ok}, items(once, 1, 2, 3), items(once, 1, 2), "ended after 2 items of 3"},
		{"lost in the middle", []execution{once}, []outcome{ok}, items(once, 1, 2, 3), items(once, 1, 3), "item 3 came where 2 is due"},
		{"lost at the beginning", []execution{once}, []outcome{ok}, items(once, 1, 2, 3), items(once, 2, 3), "item 2 came where 1 is due"},
		{"received twice", []execution{once}, []outcome{ok}, items(once, 1, 2, 3), items(once, 1, 2, 2, 3), "item 2 came where 3 is due"},
		{"out of order", []execution{once}, []outcome{ok}, items(once, 1, 2, 3), items(once, 1, 3, 2), "item 3 came where 2 is due"},
		{"produced twice", []execution{once}, []outcome{ok}, items(once, 1, 2, 2, 3), items(once, 1, 2, 3), "produced item 2 where 3 is due"},
		{"never produced", []execution{once}, []outcome{ok}, items(once, 1, 2), items(once, 1, 2, 3), "has produced 2"},
		{"more than was asked for", []execution{once}, []outcome{ok}, items(once, 1, 2, 3, 4), items(once, 1, 2, 3), "4 items of 3"},
		{"of two executions", []execution{once, elsewhere}, []outcome{ok}, append(items(once, 1, 2, 3), items(elsewhere, 1, 2, 3)...), append(items(once, 1), items(elsewhere, 2, 3)...), "items of two executions"},
		{"of no execution", nil, []outcome{ok}, items(once, 1, 2, 3), items(once, 1, 2, 3), "which was not executed"},
		{"of a call that was not executed", nil, []outcome{stream(outcomeNot, "unavailable", 3)}, items(once, 1), items(once, 1), "1 items came"},
		{"of no stream", []execution{once}, []outcome{stream(outcomeOK, "-", noStream)}, items(once, 1), nil, "which is no stream"},
		{"of no call", []execution{once}, nil, nil, items(once, 1), "it has no outcome"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(judgeStreams(test.executions, test.outcomes, test.produced, test.received), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}
