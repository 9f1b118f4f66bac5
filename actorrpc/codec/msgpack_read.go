package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// These texts are the same in Python.
const (
	notMsgpack  = "the bytes are no msgpack value"
	trailing    = "bytes follow the value"
	notArgs     = "the bytes are no arguments: not an array of an array and a map with names"
	readTooDeep = "nested deeper than 100 levels"
	badKey      = "a map key is neither a string nor an int"
	badText     = "a string is no valid UTF-8"
	badTime     = "a time is malformed, or outside of the years 1 to 9999"
	badArray    = "an array is malformed"
	badActor    = "an actor reference is malformed"
	badBuffer   = "a reference to a buffer is malformed"
)

func bad(problem string) error { return &Error{Problem: problem} }

// unpacker reads trees from msgpack. A length that is declared is believed only
// as far as there are bytes for all that was declared before and within it.
type unpacker struct {
	dec     *msgpack.Decoder
	data    []byte
	in      *bytes.Reader // over data
	buffers [][]byte
	taken   []bool // the buffers that were referred to
	within  bool   // an extension
	room    int    // for elements: each is a byte at least
	memory  *budget
	names   map[string]string // strings that need not be made
}

func (s *Shapes) readMsgpack(args bool, data []byte, buffers [][]byte, memory *budget) (scope, error) {
	u := unpacker{
		dec: msgpack.GetDecoder(), data: data, in: bytes.NewReader(data), buffers: buffers, room: len(data), memory: memory, names: s.fieldNames(),
	}
	defer msgpack.PutDecoder(u.dec)
	u.dec.ResetReader(u.in)
	found, err := u.scope(args)
	if err != nil {
		return scope{}, err
	}
	if u.in.Len() > 0 {
		return scope{}, bad(trailing)
	}
	return found, nil
}

func (u *unpacker) scope(args bool) (scope, error) {
	if !args {
		result, err := u.value(0)
		return scope{result: result}, err
	}
	pair, err := u.value(-2) // the two outermost arrays are no levels of an argument
	if err != nil {
		return scope{}, err
	}
	return argsScope(pair)
}

// argsScope makes arguments of the outermost array.
func argsScope(tree any) (scope, error) {
	pair, _ := tree.([]any)
	if len(pair) != 2 {
		return scope{}, bad(notArgs)
	}
	positional, isList := pair[0].([]any)
	named, isMap := pair[1].(map[string]any)
	if !isList || !isMap {
		return scope{}, bad(notArgs)
	}
	return scope{args: true, positional: positional, named: named}, nil
}

// value reads the next one.
func (u *unpacker) value(depth int) (any, error) {
	if u.in.Len() == 0 {
		return nil, bad(notMsgpack)
	}
	c := u.data[len(u.data)-u.in.Len()]
	switch {
	case msgpcode.IsFixedNum(c), c >= msgpcode.Uint8 && c <= msgpcode.Int64:
		return u.number(c)
	case c == msgpcode.Nil, c == msgpcode.False, c == msgpcode.True, c == msgpcode.Float, c == msgpcode.Double:
		return u.simple(c)
	case msgpcode.IsString(c):
		return u.text()
	case msgpcode.IsBin(c):
		if err := u.memory.take(headerSize); err != nil {
			return nil, err
		}
		return u.bytes()
	case msgpcode.IsFixedArray(c), c == msgpcode.Array16, c == msgpcode.Array32:
		return u.list(depth)
	case msgpcode.IsFixedMap(c), c == msgpcode.Map16, c == msgpcode.Map32:
		return u.table(depth)
	case msgpcode.IsExt(c):
		return u.ext()
	}
	return nil, bad(notMsgpack)
}

func (u *unpacker) number(c byte) (any, error) {
	if !msgpcode.IsFixedNum(c) {
		if err := u.memory.take(numberSize); err != nil {
			return nil, err
		}
	}
	if c == msgpcode.Uint64 {
		n, err := u.dec.DecodeUint64()
		return unsigned(n), whole(err)
	}
	n, err := u.dec.DecodeInt64()
	return n, whole(err)
}

func (u *unpacker) simple(c byte) (any, error) {
	switch c {
	case msgpcode.Float, msgpcode.Double:
		if err := u.memory.take(numberSize); err != nil {
			return nil, err
		}
		f, err := u.dec.DecodeFloat64()
		return f, whole(err)
	case msgpcode.Nil:
		return nil, whole(u.dec.DecodeNil())
	}
	b, err := u.dec.DecodeBool()
	return b, whole(err)
}

// whole is what is wrong if the decoder finds the bytes too short.
func whole(err error) error {
	if err != nil {
		return bad(notMsgpack)
	}
	return nil
}

func (u *unpacker) text() (any, error) {
	word, err := u.word()
	if err != nil {
		return nil, err
	}
	return word, nil
}

func (u *unpacker) word() (string, error) {
	data, err := u.bytes()
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", bad(badText)
	}
	if err := u.memory.take(textSize(len(data))); err != nil {
		return "", err
	}
	if name, ok := u.names[string(data)]; ok {
		return name, nil
	}
	return string(data), nil
}

// bytes are part of the message.
func (u *unpacker) bytes() ([]byte, error) {
	n, err := u.dec.DecodeBytesLen()
	if err != nil || n < 0 || n > u.in.Len() {
		return nil, bad(notMsgpack)
	}
	return u.take(n), nil
}

func (u *unpacker) take(n int) []byte {
	start := len(u.data) - u.in.Len()
	u.in.Reset(u.data[start+n:])
	return u.data[start : start+n : start+n]
}

func (u *unpacker) list(depth int) (any, error) {
	n, err := u.dec.DecodeArrayLen()
	if err != nil || !u.claim(n) {
		return nil, bad(notMsgpack)
	}
	if depth >= MaxDepth {
		return nil, bad(readTooDeep)
	}
	if err := u.memory.take(headerSize + slotSize*uint64(n)); err != nil {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = u.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// claim takes room for n elements, if it is left.
func (u *unpacker) claim(n int) bool {
	if n < 0 || n > u.room {
		return false
	}
	u.room -= n
	return true
}

func (u *unpacker) table(depth int) (any, error) {
	n, err := u.dec.DecodeMapLen()
	if err != nil || !u.claim(n) || !u.claim(n) {
		return nil, bad(notMsgpack)
	}
	if depth >= MaxDepth {
		return nil, bad(readTooDeep)
	}
	if err := u.memory.take(tableSize(n, rowSize)); err != nil {
		return nil, err
	}
	words := make(map[string]any, n)
	var numbers map[any]any
	for range n {
		word, key, err := u.key(depth + 1)
		if err != nil {
			return nil, err
		}
		value, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		switch key := key.(type) {
		case nil:
			words[word] = value
		case int64, uint64:
			if numbers == nil {
				if err := u.memory.take(tableSize(n, rowSize)); err != nil {
					return nil, err
				}
				numbers = make(map[any]any, n)
			}
			numbers[key] = value
		default:
			return nil, bad(badKey)
		}
	}
	return merged(words, numbers), nil
}

// key is that of a row: a word, or a value that is none.
func (u *unpacker) key(depth int) (word string, key any, err error) {
	if u.in.Len() > 0 && msgpcode.IsString(u.data[len(u.data)-u.in.Len()]) {
		word, err = u.word()
		return word, nil, err
	}
	if key, err = u.value(depth); err == nil && key == nil {
		err = bad(badKey)
	}
	return "", key, err
}

// merged is one map of the rows with a string and those with an int, which may be nil.
func merged(words map[string]any, numbers map[any]any) any {
	if numbers == nil {
		return words
	}
	for k, v := range words {
		numbers[k] = v
	}
	return numbers
}

func (u *unpacker) ext() (any, error) {
	kind, n, err := u.dec.DecodeExtHeader()
	if err != nil || n < 0 || n > u.in.Len() {
		return nil, bad(notMsgpack)
	}
	if u.within { // it could nest without end
		return nil, bad(notMsgpack)
	}
	if err := u.memory.take(extSize); err != nil {
		return nil, err
	}
	switch kind {
	case extTime:
		return timeOf(u.take(n))
	case extArray:
		return u.array(n)
	case extActor:
		return u.actor(n)
	case extBuffer:
		index, err := u.payload(n, badBuffer)
		if err != nil {
			return nil, err
		}
		return u.buffer(index)
	}
	return nil, bad(fmt.Sprintf("extension type %d is not of this protocol", kind))
}

// payload is the one value that an extension of n bytes holds.
func (u *unpacker) payload(n int, problem string) (any, error) {
	after := u.in.Len() - n
	u.within = true
	tree, err := u.value(0)
	u.within = false
	if over, ok := errors.AsType[*TooLargeError](err); ok {
		return nil, over
	}
	if err != nil || u.in.Len() != after {
		return nil, bad(problem)
	}
	return tree, nil
}

// buffer is the one that an index refers to. Each may be referred to once, as a
// copy of it might be made each time.
func (u *unpacker) buffer(index any) ([]byte, error) {
	i, ok := index.(int64)
	if !ok {
		return nil, bad(badBuffer)
	}
	if i < 0 || i >= int64(len(u.buffers)) {
		return nil, bad(fmt.Sprintf("buffer %d is referred to, and the message has %s", i, counted(len(u.buffers), "buffer")))
	}
	if u.taken == nil {
		u.taken = make([]bool, len(u.buffers))
	}
	if u.taken[i] {
		return nil, bad(fmt.Sprintf("buffer %d is referred to twice", i))
	}
	u.taken[i] = true
	return u.buffers[i], nil
}

func (u *unpacker) array(n int) (any, error) {
	tree, err := u.payload(n, badArray)
	if err != nil {
		return nil, err
	}
	parts, _ := tree.([]any)
	if len(parts) != 3 {
		return nil, bad(badArray)
	}
	dtype, isText := parts[0].(string)
	shape, isShape := shapeOf(parts[1])
	if !isText || !isShape {
		return nil, bad(badArray)
	}
	data, inline := parts[2].([]byte)
	if !inline {
		if data, err = u.buffer(parts[2]); err != nil {
			return nil, err
		}
	}
	a := NDArray{DType: DType(dtype), Shape: shape, Data: data}
	return a, a.check()
}

func shapeOf(tree any) ([]int, bool) {
	list, ok := tree.([]any)
	shape := make([]int, len(list))
	for i, v := range list {
		n, isInt := v.(int64)
		if !isInt || n < 0 || n > math.MaxInt {
			return nil, false
		}
		shape[i] = int(n)
	}
	return shape, ok
}

func (u *unpacker) actor(n int) (any, error) {
	tree, err := u.payload(n, badActor)
	if err != nil {
		return nil, err
	}
	parts, _ := tree.([]any)
	if len(parts) != 3 && len(parts) != 4 {
		return nil, bad(badActor)
	}
	texts := [4]string{}
	for i, part := range parts {
		text, ok := part.(string)
		if !ok {
			return nil, bad(badActor)
		}
		texts[i] = text
	}
	return ActorRef{Name: texts[0], Namespace: texts[1], URL: texts[2], Member: texts[3]}, nil
}

// timeOf reads the three forms of msgpack's timestamp.
func timeOf(data []byte) (any, error) {
	var seconds int64
	var nanos uint32
	switch len(data) {
	case 4:
		seconds = int64(binary.BigEndian.Uint32(data))
	case 8:
		bits := binary.BigEndian.Uint64(data)
		seconds, nanos = int64(bits&(1<<34-1)), uint32(bits>>34)
	case 12:
		seconds, nanos = int64(binary.BigEndian.Uint64(data[4:])), binary.BigEndian.Uint32(data)
	default:
		return nil, bad(badTime)
	}
	if nanos > 999_999_999 || seconds < -62_135_596_800 || seconds > 253_402_300_799 {
		return nil, bad(badTime)
	}
	return time.Unix(seconds, int64(nanos)).UTC(), nil
}
