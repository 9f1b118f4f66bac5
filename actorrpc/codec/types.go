package codec

import (
	"fmt"
	"math"
	"slices"
)

// ActorRef is a reference to an actor: what a handle is, on its way.
type ActorRef struct {
	Name      string
	Namespace string
	URL       string // where to resolve it, "" where the receiver resolves names itself
	// Member is which of several actors of the name: "job/task", or a machine. "":
	// whichever the name stands for. It is carried only where it is not "".
	Member string
}

// Referrer is what stands for an actor, as a client's handle does; it is carried
// as the reference.
type Referrer interface{ ActorRef() ActorRef }

// DType names the type of an array's elements, as numpy does.
type DType string

// The element types that are carried.
const (
	Bool       DType = "bool" // a byte each, 0 or 1
	Int8       DType = "int8"
	Int16      DType = "int16"
	Int32      DType = "int32"
	Int64      DType = "int64"
	Uint8      DType = "uint8"
	Uint16     DType = "uint16"
	Uint32     DType = "uint32"
	Uint64     DType = "uint64"
	Float16    DType = "float16"  // IEEE 754 binary16
	BFloat16   DType = "bfloat16" // the upper half of a float32
	Float32    DType = "float32"
	Float64    DType = "float64"
	Complex64  DType = "complex64" // two float32, real first
	Complex128 DType = "complex128"
)

// Size is the length in bytes of an element, 0 of a type that is not carried.
func (t DType) Size() int {
	switch t {
	case Bool, Int8, Uint8:
		return 1
	case Int16, Uint16, Float16, BFloat16:
		return 2
	case Int32, Uint32, Float32:
		return 4
	case Int64, Uint64, Float64, Complex64:
		return 8
	case Complex128:
		return 16
	}
	return 0
}

// maxDims is how many dimensions an array may have; older versions of numpy have no more.
const maxDims = 32

// NDArray is an array of numbers in C order, little endian. An empty Shape is a
// single number.
type NDArray struct {
	DType DType
	Shape []int
	Data  []byte
}

// Len is the number of elements.
func (a NDArray) Len() int {
	if size := a.DType.Size(); size > 0 {
		return len(a.Data) / size
	}
	return 0
}

// check returns what is wrong with the array, nil if its parts agree.
func (a NDArray) check() error {
	if a.DType.Size() == 0 {
		return &Error{Problem: fmt.Sprintf("an array of dtype %s is carried by no codec; convert it to a bool, int, float or complex dtype", a.DType)}
	}
	if len(a.Shape) > maxDims {
		return &Error{Problem: fmt.Sprintf("an array of %d dimensions; at most %d are carried", len(a.Shape), maxDims)}
	}
	want := a.DType.Size()
	for _, n := range a.Shape {
		if n < 0 || n > 0 && want > math.MaxInt64/2/n {
			return &Error{Problem: fmt.Sprintf("no array has the shape %s", shapeText(a.Shape))}
		}
		if n > 0 {
			want *= n
		}
	}
	if slices.Contains(a.Shape, 0) {
		want = 0
	}
	if len(a.Data) != want {
		return &Error{Problem: fmt.Sprintf("an array of shape %s of %s has %d bytes, got %d", shapeText(a.Shape), a.DType, want, len(a.Data))}
	}
	if a.DType == Bool && slices.ContainsFunc(a.Data, func(b byte) bool { return b > 1 }) {
		return bad(badArray)
	}
	return nil
}
