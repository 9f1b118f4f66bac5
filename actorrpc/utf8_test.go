package actorrpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// garbler says what is no UTF-8, as what it read of a file or a socket.
type garbler struct{}

const garbled = "read \xff\xfe"

func (garbler) Return() error { return errors.New(garbled) }

func (garbler) Wrap() error { return fmt.Errorf("load: %w", errors.New(garbled)) }

func (garbler) Panic() { panic(garbled) }

func (garbler) Own() error {
	return &rpcerror.Error{Code: rpcerror.CodeApplication, Message: garbled, Suggestions: []string{garbled}}
}

func (garbler) Fine() int { return 1 }

// An error whose text is no UTF-8 arrives, with what is none replaced.
func TestErrorsThatAreNoUTF8(t *testing.T) {
	server, _ := serve(t, host.Config{}, map[string]any{"garbler": garbler{}})
	for way, url := range urls(server.Address()) {
		h := lookup(t, dialed(t, actorrpc.Config{}, url), "garbler")
		for _, method := range []string{"return", "wrap", "panic", "own"} {
			t.Run(way+", "+method, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err := actorrpc.Call[int](ctx, h, method)
				if rpcerror.CodeOf(err) != rpcerror.CodeApplication || !strings.Contains(err.Error(), "read \ufffd") {
					t.Errorf("error is %v, want the method's", err)
				}
			})
		}
	}
}

// No actor has a name that is no UTF-8, and asking for one holds up nothing.
func TestNamesThatAreNoUTF8(t *testing.T) {
	server, _ := serve(t, host.Config{}, map[string]any{"garbler": garbler{}})
	for way, url := range urls(server.Address()) {
		client := dialed(t, actorrpc.Config{}, url)
		h, none := lookup(t, client, "garbler"), lookup(t, client, "garbler\xff")
		tests := []struct {
			name string
			call func(ctx context.Context) error
			code rpcerror.Code
			text string
		}{
			{"a method", func(ctx context.Context) error {
				_, err := actorrpc.Call[int](ctx, h, "fine\xff")
				return err
			}, rpcerror.CodeUnknownMethod, `no method "fine\xff"`},
			{"of a future", func(ctx context.Context) error {
				_, err := actorrpc.Go[int](ctx, h, "fine\xff").Result(ctx)
				return err
			}, rpcerror.CodeUnknownMethod, `no method "fine\xff"`},
			{"of a raw call", func(ctx context.Context) error {
				_, err := actorrpc.CallRaw(ctx, h, "fine\xff", actorrpc.Raw{Codec: codec.JSON, Data: []byte("[[],{}]")})
				return err
			}, rpcerror.CodeUnknownMethod, `no method "fine\xff"`},
			{"an actor", func(ctx context.Context) error {
				_, err := actorrpc.Call[int](ctx, none, "fine")
				return err
			}, rpcerror.CodeUnknownActor, `no actor "garbler\xff"`},
		}
		for _, test := range tests {
			t.Run(way+", "+test.name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err := test.call(ctx)
				if rpcerror.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) {
					t.Errorf("error is %v, want %s, %s", err, test.code, test.text)
				}
				if n, err := actorrpc.Call[int](ctx, h, "fine"); err != nil || n != 1 {
					t.Errorf("the next call: %d, %v; want 1", n, err)
				}
			})
		}
	}
	if _, err := resolver.ParseURL("actor://127.0.0.1:1/%ff"); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a URL of such a name: error is %v, want one", err)
	}
}
