package codec

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// The extension types of the protocol, and msgpack's own for times.
const (
	extTime   int8 = -1
	extArray  int8 = 1 // an array of its dtype, shape and data: bytes, or the index of a buffer
	extActor  int8 = 2 // an array of name, namespace and URL
	extBuffer int8 = 3 // the index of a buffer
)

// packer writes trees as msgpack. What it writes to cannot fail, so the errors of
// the encoder are only collected.
type packer struct {
	enc     *msgpack.Encoder
	out     bytes.Buffer
	buffers [][]byte
}

func writeMsgpack(s scope) ([]byte, [][]byte, error) {
	p := packer{enc: msgpack.GetEncoder()}
	defer msgpack.PutEncoder(p.enc)
	p.out.Grow(64 + room(s.positional) + room(s.named) + room(s.result))
	p.enc.Reset(&p.out)
	var err error
	if s.args {
		err = errors.Join(p.enc.EncodeArrayLen(2), p.list(s.positional), p.table(s.named))
	} else {
		err = p.value(s.result)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("write msgpack: %w", err)
	}
	return p.out.Bytes(), p.buffers, nil
}

// room is about how many bytes a tree takes, so that they are allocated once.
func room(tree any) int {
	const number, head = 9, 5
	n := number
	switch v := tree.(type) {
	case string:
		n = head + len(v)
	case []byte:
		if len(v) < OutOfBand {
			n = head + len(v)
		}
	case []any:
		for _, each := range v {
			n += room(each)
		}
	case map[string]any:
		for name, each := range v {
			n += head + len(name) + room(each)
		}
	case map[any]any:
		for name, each := range v {
			n += room(name) + room(each)
		}
	case rows:
		for _, r := range v {
			n += head + len(r.name) + room(r.value)
		}
	case NDArray:
		if n += 32 + number*len(v.Shape); len(v.Data) < OutOfBand {
			n += len(v.Data)
		}
	}
	return n
}

func (p *packer) value(tree any) error {
	switch v := tree.(type) {
	case nil:
		return p.enc.EncodeNil()
	case bool:
		return p.enc.EncodeBool(v)
	case int64:
		return p.enc.EncodeInt(v)
	case uint64:
		return p.enc.EncodeUint(v)
	case float64:
		return p.enc.EncodeFloat64(v)
	case string:
		return p.enc.EncodeString(v)
	case []byte:
		return p.bytes(v)
	case []any:
		return p.list(v)
	case map[string]any:
		return p.table(v)
	case map[any]any:
		return p.mixed(v)
	case rows:
		return p.rows(v)
	case time.Time:
		return p.enc.EncodeTime(v)
	case NDArray:
		return p.array(v)
	case ActorRef:
		return p.actor(v)
	}
	return fmt.Errorf("%T is no part of a tree", tree)
}

func (p *packer) bytes(data []byte) error {
	if len(data) < OutOfBand {
		return p.enc.EncodeBytes(data)
	}
	return p.ext(extBuffer, func() error { return p.buffer(data) })
}

// buffer puts data beside the message and writes its index.
func (p *packer) buffer(data []byte) error {
	p.buffers = append(p.buffers, data)
	return p.enc.EncodeUint(uint64(len(p.buffers) - 1))
}

func (p *packer) list(list []any) error {
	if err := p.enc.EncodeArrayLen(len(list)); err != nil {
		return err
	}
	for _, v := range list {
		if err := p.value(v); err != nil {
			return err
		}
	}
	return nil
}

// table writes the rows by name, so that equal maps are equal bytes.
func (p *packer) table(table map[string]any) error {
	if err := p.enc.EncodeMapLen(len(table)); err != nil || len(table) == 0 {
		return err
	}
	for _, k := range sortedKeys(table) {
		if err := p.enc.EncodeString(k); err != nil {
			return err
		}
		if err := p.value(table[k]); err != nil {
			return err
		}
	}
	return nil
}

// rows writes a struct as the map that it is.
func (p *packer) rows(table rows) error {
	if err := p.enc.EncodeMapLen(len(table)); err != nil {
		return err
	}
	for _, r := range table {
		if err := p.enc.EncodeString(r.name); err != nil {
			return err
		}
		if err := p.value(r.value); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) mixed(table map[any]any) error {
	if err := p.enc.EncodeMapLen(len(table)); err != nil {
		return err
	}
	for _, k := range mixedKeys(table) {
		if err := p.value(k); err != nil {
			return err
		}
		if err := p.value(table[k]); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) array(a NDArray) error {
	return p.ext(extArray, func() error {
		err := errors.Join(p.enc.EncodeArrayLen(3), p.enc.EncodeString(string(a.DType)), p.enc.EncodeArrayLen(len(a.Shape)))
		for _, n := range a.Shape {
			err = errors.Join(err, p.enc.EncodeUint(uint64(n)))
		}
		if len(a.Data) >= OutOfBand {
			return errors.Join(err, p.buffer(a.Data))
		}
		// A nil slice would be written as nil.
		return errors.Join(err, p.enc.EncodeBytes(append([]byte{}, a.Data...)))
	})
}

func (p *packer) actor(r ActorRef) error {
	parts := []string{r.Name, r.Namespace, r.URL}
	if r.Member != "" {
		parts = append(parts, r.Member)
	}
	return p.ext(extActor, func() error {
		err := p.enc.EncodeArrayLen(len(parts))
		for _, part := range parts {
			err = errors.Join(err, p.enc.EncodeString(part))
		}
		return err
	})
}

// ext writes a payload, whose length must be known before it, apart first.
func (p *packer) ext(kind int8, payload func() error) error {
	var apart bytes.Buffer
	p.enc.ResetWriter(&apart)
	err := payload()
	p.enc.ResetWriter(&p.out)
	err = errors.Join(err, p.enc.EncodeExtHeader(kind, apart.Len()))
	p.out.Write(apart.Bytes()) // cannot fail
	return err
}
