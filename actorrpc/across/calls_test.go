package across

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Every type that is carried arrives as it was sent, and comes back so.
func TestResults(t *testing.T) {
	array := `{"$ndarray":{"data":"AACAPwAAAEAAAEBA","dtype":"float32","shape":[3,1]}}`
	values := map[string]string{
		"none": "null", "bool": "true", "int": "-7", "least int": "-9223372036854775808", "largest int": "18446744073709551615",
		"float": "1.5", "text": `"größer, 大きい"`, "bytes": `{"$bytes":"AP8="}`, "list": `[1,[],"a",null]`, "map": `{"a":{"b":[1]},"c":2}`,
		"time": `{"$time":"2026-01-31T12:00:00.000001Z"}`, "array": array, "arrays within": `{"x":[` + array + `]}`,
		"scalar":    `{"$ndarray":{"data":"AACAPw==","dtype":"float32","shape":[]}}`,
		"reference": `{"$actor":{"name":"x","namespace":"","url":"actor://127.0.0.1:1/x"}}`,
		"long":      `"` + strings.Repeat("x", 100_000) + `"`, "many bytes": `{"$bytes":"` + strings.Repeat("AAAA", 100_000) + `"}`,
	}
	pairs(t, func(t *testing.T, c caller, s *server) {
		for name, value := range values {
			got := c.do(t, order{Do: "call", Address: s.address, Method: "echo", Args: "[[" + value + "],{}]"})
			if got.Error != nil || got.Value != value {
				t.Errorf("%s: got %s, want %s", name, clip(got.String()), clip(value))
			}
		}
		rare := c.do(t, order{Do: "relay", Address: s.address, Method: "rare is_rare"})
		if rare.Value != "true" {
			t.Errorf("int keys, NaN, infinity: got %s, want that they arrive", rare)
		}
	})
}

func clip(text string) string { return text[:min(len(text), 500)] }

// Facts 26 and 27, and all that a caller can do wrong: the same code and the same
// words from everywhere, and the server goes on.
func TestErrors(t *testing.T) {
	pairs(t, func(t *testing.T, c caller, s *server) {
		before := c.do(t, order{Do: "call", Address: s.address, Method: "total", Args: "[[],{}]"})
		for _, test := range failures() {
			t.Run(test.name, func(t *testing.T) {
				o, want := test.order, test.want
				o.Do, o.Address, o.Retries = "call", s.address, 3 // which change nothing
				got := c.do(t, o).Error
				if got == nil {
					t.Fatal("got a result, want an error")
				}
				if want.Actor == "" {
					want.Actor = "subject"
				}
				// The caller's clock or the actor's, whichever notices first.
				got.Message = strings.TrimSuffix(got.Message, " while the method ran")
				want.Message += test.byServer[s.language] + test.byCaller[c.in()]
				if got.Code != want.Code || got.Message != want.Message || got.Ran != want.Ran || got.Actor != want.Actor ||
					got.Method != want.Method || got.Argument != want.Argument || !slices.Equal(got.Near, want.Near) {
					t.Errorf("got  %+v\nwant %+v", *got, want)
				}
			})
		}
		after := c.do(t, order{Do: "call", Address: s.address, Method: "total", Args: "[[],{}]"})
		if after.Error != nil || after.Value != before.Value {
			t.Errorf("the total is %s, was %s before: want that nothing ran and the server goes on", after, before)
		}
	})
}

// Fact 27: of an exception its type, traceback and cause arrive as text.
func TestExceptions(t *testing.T) {
	want := map[language]problem{
		golang: {Type: "across.lessonError", Cause: "inner"},
		python: {Type: "ValueError", Cause: "KeyError: 'inner'", Traceback: `raise ValueError(text) from KeyError("inner")`},
	}
	pairs(t, func(t *testing.T, c caller, s *server) {
		got := c.do(t, order{Do: "call", Address: s.address, Method: "fail", Args: `[["no"],{}]`}).Error
		w := want[s.language]
		if got == nil || got.Type != w.Type || got.Cause != w.Cause || !strings.Contains(got.Traceback, w.Traceback) {
			t.Errorf("got  %+v\nwant %+v", got, w)
		}
	})
}

// Facts 24 and 26: named arguments, and state that stays from call to call.
func TestState(t *testing.T) {
	pairs(t, func(t *testing.T, c caller, s *server) {
		before := total(t, c, s.address)
		for _, args := range []string{"[[2],{}]", `[[],{"by":3}]`} {
			if a := c.do(t, order{Do: "call", Address: s.address, Method: "add", Args: args}); a.Error != nil {
				t.Fatal(a)
			}
		}
		if got := total(t, c, s.address); got != before+5 {
			t.Errorf("got %d, want %d", got, before+5)
		}
	})
}

// Fact 32: a handle that is an argument is called back, with the deadline of the
// call that it came by, from a server in either language.
func TestHandlesAsArguments(t *testing.T) {
	others := map[language]*server{}
	for _, l := range languages() {
		others[l] = startServer(t, l, 0)
	}
	pairs(t, func(t *testing.T, c caller, s *server) {
		for l, other := range others {
			before := total(t, c, other.address)
			ref := `{"$actor":{"name":"subject","namespace":"","url":"actor://` + other.address + `/subject"}}`
			forward := order{Do: "call", Address: s.address, Method: "forward", Args: `[[` + ref + `,"add",[4]],{}]`}
			if a := c.do(t, forward); a.Error != nil {
				t.Fatalf("to one in %s: %s", l, a)
			}
			if got := total(t, c, other.address); got != before+4 {
				t.Errorf("to one in %s: the total is %d, want %d", l, got, before+4)
			}
			forward.Args = `[[` + ref + `,"left",[]],{}]`
			if a := c.do(t, forward); a.Value != "false" {
				t.Errorf("to one in %s, without a deadline: got %s, want false", l, a)
			}
			forward.Timeout = patience.Seconds()
			if a := c.do(t, forward); a.Value != "true" {
				t.Errorf("to one in %s, with a deadline: got %s, want true", l, a)
			}
		}
	})
}

// A call that is cancelled ends, also where it runs: the next one can run then.
func TestCancel(t *testing.T) {
	pairs(t, func(t *testing.T, c caller, s *server) {
		before := total(t, c, s.address)
		c.do(t, order{Do: "begin", ID: 1, Address: s.address, Method: "wait", Args: "[[],{}]"})
		c.do(t, order{Do: "begin", ID: 2, Address: s.address, Method: "add", Args: "[[1000],{}]"})
		expect(t, "both are there", func() bool { return pending(t, s.address) == 2 })
		c.do(t, order{Do: "cancel", ID: 2})
		c.do(t, order{Do: "cancel", ID: 1})
		for _, id := range []int{1, 2} {
			got := c.do(t, order{Do: "end", ID: id}).Error
			if got == nil || got.Code != rpcerror.CodeCancelled || got.Actor != "subject" || !strings.Contains(got.Message, "cancelled") {
				t.Errorf("call %d: got %+v, want that it was cancelled", id, got)
			}
		}
		if got := total(t, c, s.address); got != before {
			t.Errorf("the total is %d, want %d", got, before)
		}
	})
}

// A method that fails runs again as often as is asked for, or as it declares: by the type of its error, also
// of one that the error wraps or inherits from.
func TestRetriedErrors(t *testing.T) {
	base := map[language]string{golang: "across.lessonError", python: "LookupError"}
	tests := []struct {
		name   string
		method string
		order  order
		base   bool // the errors that are retried are those of the base type
		runs   int
	}{
		{"not asked for", "flaky", order{Retries: 3}, false, 1},
		{"all", "flaky", order{Retries: 3, RetryOf: "*"}, false, 4},
		{"by type", "flaky", order{Retries: 3}, true, 4},
		{"another type", "flaky", order{Retries: 3, RetryOf: "KeyError"}, false, 1},
		{"declared", "declared", order{}, false, 3},
		{"declared, and more asked for", "declared", order{Retries: 4}, false, 5},
		{"declared, and another type asked for", "declared", order{RetryOf: "KeyError"}, false, 1},
	}
	pairs(t, func(t *testing.T, c caller, s *server) {
		for _, test := range tests {
			total := func() string {
				return c.do(t, order{Do: "call", Address: s.address, Method: "total", Args: "[[],{}]"}).Value
			}
			before, err := strconv.Atoi(total())
			if err != nil {
				t.Fatal(err)
			}
			o := test.order
			o.Do, o.Address, o.Method, o.Args = "call", s.address, test.method, "[[1000],{}]"
			if test.base {
				o.RetryOf = base[s.language]
			}
			if got := c.do(t, o); got.Error == nil || got.Error.Code != rpcerror.CodeApplication {
				t.Errorf("%s: got %s, want the method's error", test.name, got)
			}
			if got, want := total(), strconv.Itoa(before+test.runs); got != want {
				t.Errorf("%s: %s runs in all, want %s", test.name, got, want)
			}
		}
	})
}
