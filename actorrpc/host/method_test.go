package host

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"Get": "get", "GetLesson": "get_lesson", "GetURL": "get_url", "HTTPPort": "http_port", "A": "a", "X2Y": "x2_y",
		"Get_Lesson": "get_lesson", "ÄndereÖl": "ändere_öl", "IDs": "i_ds",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestNear(t *testing.T) {
	names := []string{"increment", "decrement", "increments", "get", "set"}
	tests := []struct {
		name string
		want []string
	}{
		{"incrment", []string{"increment", "increments", "decrement"}},
		{"gett", []string{"get"}},
		{"fly", nil},
		{"", nil},
		{"Get", []string{"get", "set"}},
	}
	for _, test := range tests {
		if got := rpcerror.Suggest(test.name, names); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.name, got, test.want)
		}
	}
	if got := rpcerror.Suggest(string(make([]byte, 1<<20)), names); got != nil {
		t.Errorf("got %q near a very long name", got)
	}
}

type forms struct{ n int }

func (f forms) Plain()                             {}
func (f *forms) Pointer(n int) int                 { f.n += n; return f.n }
func (f *forms) Context(ctx context.Context) error { return ctx.Err() }
func (f *forms) Pair() (int, int)                  { return 1, 2 }
func (f *forms) Only() error                       { return nil }
func (f *forms) hidden()                           {}

func TestClassOf(t *testing.T) {
	c, err := classOf(reflect.TypeFor[*forms]())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range c.methods {
		got = append(got, m.signature)
	}
	slices.Sort(got)
	want := []string{"context() error", "only() error", "plain()", "pointer(int) int"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	new(forms).hidden()
}

// unwritten is an error after which it is not known whether the call took effect.
type unwritten struct{}

func (unwritten) Error() string       { return "the disk is full" }
func (unwritten) MaybeExecuted() bool { return true }

func TestErrorsOfMethods(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(cancelledByCaller())
	inner := &rpcerror.Error{Code: rpcerror.CodeBusy, Message: "later"}
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want rpcerror.Error
	}{
		{"its own", t.Context(), errors.New("no"), rpcerror.Error{Code: rpcerror.CodeApplication, Message: "no", Type: "*errors.errorString"}},
		{"that of a call it made", t.Context(), inner, rpcerror.Error{Code: rpcerror.CodeApplication, Message: "later", Type: "*rpcerror.Error", Cause: inner}},
		{"cancelled, but not by its caller", t.Context(), context.Canceled, rpcerror.Error{Code: rpcerror.CodeApplication, Message: "context canceled", Type: "*errors.errorString"}},
		{"cancelled by its caller", ended, ended.Err(), rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the caller cancelled the call"}},
		{"the cause of that", ended, context.Cause(ended), rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the caller cancelled the call"}},
		{"another after it was cancelled", ended, errors.New("no"), rpcerror.Error{Code: rpcerror.CodeApplication, Message: "no", Type: "*errors.errorString"}},
		{"no answer", t.Context(), fmt.Errorf("put: %w", unwritten{}), rpcerror.Error{Code: rpcerror.CodeMaybeExecuted, Message: "put: the disk is full"}},
		{"two at once", t.Context(), errors.Join(errors.New("one"), inner), rpcerror.Error{
			Code: rpcerror.CodeApplication, Message: "one\nlater", Type: "*errors.joinError", Bases: []string{"*errors.errorString", "*rpcerror.Error"},
			Cause: &rpcerror.Error{Code: rpcerror.CodeApplication, Message: "one", Type: "*errors.errorString"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.want.Ran = true
			if got := methodError(test.ctx, test.err); !reflect.DeepEqual(*got, test.want) {
				t.Errorf("got  %+v\nwant %+v", *got, test.want)
			}
		})
	}
}
