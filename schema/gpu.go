package schema

import (
	"cmp"
	"fmt"
)

// GPU is what a machine has of GPUs: Count of one type. The zero GPU is none.
type GPU struct {
	Type  string `json:"type,omitempty"` // canonical, "h100"; "": any that the provider has
	Count int    `json:"count,omitempty"`
}

// String is "8 h100", the form of reasons and tables; "" for none.
func (g GPU) String() string {
	switch {
	case g.Count == 0:
		return ""
	case g.Type == "" && g.Count == 1:
		return "1 GPU"
	case g.Type == "":
		return fmt.Sprintf("%d GPUs", g.Count)
	}
	return fmt.Sprintf("%d %s", g.Count, g.Type)
}

// Kind is "h100:8", the form of keys and events; "" for none.
func (g GPU) Kind() string {
	if g.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", g.Type, g.Count)
}

// Suits reports whether a machine with GPUs of this type is one of those that are asked
// for, in any number: a type that is not stated is any.
func (g GPU) Suits(asked GPU) bool { return g.Type == "" || asked.Type == "" || g.Type == asked.Type }

// Has reports whether a provider with GPUs of this type has those that are asked for, in
// any number; none are had everywhere.
func (g GPU) Has(asked GPU) bool { return asked.Count == 0 || g.Suits(asked) }

// Kind names what a slice is a machine of: its TPU type, its machine type or its GPUs;
// "" where none of them is stated.
func (s *SliceSpec) Kind() string { return cmp.Or(s.TPU, s.MachineType, s.GPU.Kind()) }

// Kind is the same for what a job asks for.
func (r *Resources) Kind() string { return cmp.Or(r.TPU, r.MachineType, r.GPU.Kind()) }
