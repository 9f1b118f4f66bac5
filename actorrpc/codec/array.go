package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// Half is a float16 as bits. Go does not compute with it.
type Half uint16

// BHalf is a bfloat16 as bits. Go does not compute with it.
type BHalf uint16

// Element is a type that arrays of Go have.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 |
		float32 | float64 | complex64 | complex128 | Half | BHalf
}

// Array is an array of the values, which it shares where the machine stores them
// as the wire does. Without a shape it has one dimension. That a shape wants
// another number of values is found when it is encoded.
func Array[T Element](values []T, shape ...int) NDArray {
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	a := NDArray{DType: dtypeOf[T](), Shape: shape}
	size := len(values) * a.DType.Size()
	if size == 0 {
		return a
	}
	if littleEndian() {
		a.Data = unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), size)
		return a
	}
	a.Data, _ = binary.Append(make([]byte, 0, size), binary.LittleEndian, values)
	return a
}

// Values are the elements of an array in C order. They share its memory, where
// that is possible; write to them only if it is yours.
func Values[T Element](a NDArray) ([]T, error) {
	if want := dtypeOf[T](); a.DType != want {
		return nil, fmt.Errorf("the array is of %s, not of %s", a.DType, want)
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if len(a.Data) == 0 {
		return nil, nil
	}
	first := unsafe.Pointer(&a.Data[0])
	if littleEndian() && uintptr(first)%unsafe.Alignof(*new(T)) == 0 {
		return unsafe.Slice((*T)(first), a.Len()), nil
	}
	values := make([]T, a.Len())
	if err := binary.Read(bytes.NewReader(a.Data), binary.LittleEndian, values); err != nil {
		return nil, fmt.Errorf("read the array: %w", err)
	}
	return values, nil
}

func littleEndian() bool {
	return binary.NativeEndian.Uint16([]byte{1, 0}) == 1
}

func dtypeOf[T Element]() DType {
	switch any(*new(T)).(type) {
	case bool:
		return Bool
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	case Half:
		return Float16
	case BHalf:
		return BFloat16
	}
	return ""
}

// Float32 is the number, exactly.
func (h Half) Float32() float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // subnormal, in units of 2^-24
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// Float32 is the number, exactly.
func (h BHalf) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// scalar is the number of an array without dimensions, and any other tree as it is.
func scalar(tree any) any {
	if a, ok := tree.(NDArray); ok && len(a.Shape) == 0 {
		return a.at(0)
	}
	return tree
}

// at is an element as a tree; one that is complex remains an array.
func (a NDArray) at(i int) any {
	size := a.DType.Size()
	data := a.Data[i*size : (i+1)*size]
	little := binary.LittleEndian
	switch a.DType {
	case Bool:
		return data[0] != 0
	case Int8:
		return int64(int8(data[0]))
	case Uint8:
		return int64(data[0])
	case Int16:
		return int64(int16(little.Uint16(data)))
	case Uint16:
		return int64(little.Uint16(data))
	case Int32:
		return int64(int32(little.Uint32(data)))
	case Uint32:
		return int64(little.Uint32(data))
	case Int64:
		return int64(little.Uint64(data))
	case Uint64:
		return unsigned(little.Uint64(data))
	case Float16:
		return float64(Half(little.Uint16(data)).Float32())
	case BFloat16:
		return float64(BHalf(little.Uint16(data)).Float32())
	case Float32:
		return float64(math.Float32frombits(little.Uint32(data)))
	case Float64:
		return math.Float64frombits(little.Uint64(data))
	case Complex64, Complex128:
	}
	return NDArray{DType: a.DType, Data: data}
}
