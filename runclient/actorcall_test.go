package runclient

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// The error of a call that was given up states whether it may have run, where the cause does
// not.
func TestMayHaveRun(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		says bool
	}{
		{"deadline while it ran", &rpcerror.Error{Code: rpcerror.CodeDeadline, Ran: true}, true},
		{"cancelled while it ran", fmt.Errorf("x: %w", &rpcerror.Error{Code: rpcerror.CodeCancelled, Ran: true}), true},
		{"deadline before it was sent", &rpcerror.Error{Code: rpcerror.CodeDeadline}, false},
		{"the method raised", &rpcerror.Error{Code: rpcerror.CodeApplication, Ran: true}, false},
		{"it says so itself", &rpcerror.Error{Code: rpcerror.CodeMaybeExecuted, Ran: true}, false},
		{"another error", errors.New("x"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := mayHaveRun(test.err); strings.Contains(got, "may have run") != test.says || !test.says && got != "" {
				t.Errorf("got %q, want it to say so: %t", got, test.says)
			}
		})
	}
}
