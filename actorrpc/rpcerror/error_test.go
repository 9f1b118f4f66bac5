package rpcerror

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fray-ml/fray/actorrpc/wire"
)

func TestErrors(t *testing.T) {
	for i, c := range orderedCodes() {
		w := (&Error{Code: c, Message: "m", Ran: true, Suggestions: []string{"n"}, Cause: &Error{Code: CodeApplication, Message: "why"}}).Wire()
		if int(w.GetCode()) != i+1 {
			t.Errorf("%s is sent as %v", c, w.GetCode())
		}
		e := FromWire(w)
		if e.Code != c || !e.Ran || e.Cause.Message != "why" || !errors.Is(e, &Error{Code: c}) || !slices.Equal(e.Suggestions, []string{"n"}) {
			t.Errorf("%s was received as %+v", c, e)
		}
		if errors.Is(e, context.DeadlineExceeded) != (c == CodeDeadline) || errors.Is(e, context.Canceled) != (c == CodeCancelled) {
			t.Errorf("%s is taken for a context's error, or is not", c)
		}
	}
	if got := len(orderedCodes()); got != len(wire.Code_name)-1 {
		t.Errorf("%d codes, the wire has %d", got, len(wire.Code_name)-1)
	}
	if FromWire(nil) != nil || CodeOf(errors.New("x")) != "" {
		t.Error("no error is one, or a foreign one has a code")
	}
}
