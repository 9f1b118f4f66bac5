package schema

import (
	"cmp"
	"fmt"
)

// GPU is what a machine has of GPUs: Count of one type. The zero GPU is none.
type GPU struct {
	Type  string `json:"type,omitempty"` // canonical, "h100"; of a provider's limit "" is any type
	Count int    `json:"count,omitempty"`
}

// String is "8 h100", the form of reasons and tables; "" for none.
func (g GPU) String() string {
	switch {
	case g.Count == 0:
		return ""
	case g.Type == "":
		return fmt.Sprintf("%d GPU", g.Count)
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

// Kind names what a slice is a machine of: its TPU type, its machine type or its GPUs;
// "" where none of them is stated.
func (s *SliceSpec) Kind() string { return cmp.Or(s.TPU, s.MachineType, s.GPU.Kind()) }
