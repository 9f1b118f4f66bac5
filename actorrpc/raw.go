package actorrpc

import (
	"context"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// Raw is an encoded call or its encoded answer, for programs that pass them on.
type Raw struct {
	Codec   codec.Kind
	Data    []byte // of a call: an array of the positional arguments and the named ones
	Buffers [][]byte
}

// CallRaw calls a method with arguments that are encoded already.
func CallRaw(ctx context.Context, h Handle, method string, args Raw) (Raw, error) {
	if h.actor == nil {
		return Raw{}, ofNoActor(method)
	}
	c := newCall(h.actor, request{
		name: h.Name(), method: method, options: h.options.withDefaults(h.client.config.Options),
		codec: args.Codec, args: args.Data, buffers: args.Buffers,
	})
	if err := c.measure(h.client.config.MaxMessageBytes); err != nil {
		return Raw{}, err
	}
	c.perform(ctx, h.client.waiters(ctx))
	if c.err != nil {
		return Raw{}, c.err.Typed()
	}
	return c.raw()
}

func (c *call) raw() (Raw, error) {
	if c.reply.GetCodec() == wire.Codec_CODEC_PICKLE {
		return Raw{}, c.decode(new(any))
	}
	return Raw{Codec: codec.Kind(c.reply.GetCodec()), Data: c.reply.GetResult(), Buffers: c.results}, nil
}
