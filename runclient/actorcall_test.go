package runclient

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
)

// The error of a call that was given up states whether it may have run, where the cause does
// not.
func TestMayHaveRun(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		says bool
	}{
		{"deadline while it ran", &actorrpc.Error{Code: actorrpc.CodeDeadline, Ran: true}, true},
		{"cancelled while it ran", fmt.Errorf("x: %w", &actorrpc.Error{Code: actorrpc.CodeCancelled, Ran: true}), true},
		{"deadline before it was sent", &actorrpc.Error{Code: actorrpc.CodeDeadline}, false},
		{"the method raised", &actorrpc.Error{Code: actorrpc.CodeApplication, Ran: true}, false},
		{"it says so itself", &actorrpc.Error{Code: actorrpc.CodeMaybeExecuted, Ran: true}, false},
		{"another error", errors.New("x"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := mayHaveRun(test.err); strings.Contains(got, "may have run") != test.says || !test.says && got != "" {
				t.Errorf("got %q, want it to say so: %t", got, test.says)
			}
		})
	}
}
