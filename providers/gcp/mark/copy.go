package mark

import (
	"errors"
	"fmt"

	"github.com/fray-ml/fray/schema"
)

// CopyError is the error of a resource that carries the marks of another one: it was made by
// copying that, with all labels and metadata.
type CopyError struct{ of, mark string }

func (e *CopyError) Error() string {
	return fmt.Sprintf("it carries the labels and metadata of slice %s of stack %s and is not that slice; delete it, or take its label %s away", e.of, e.mark, StackLabel)
}

// CopyOf is the error of a resource with the marks of another one.
func CopyOf(m Marks) error { return &CopyError{of: m.Labels[SliceLabel], mark: m.Labels[StackLabel]} }

// Skipped is a resource with the stack's mark that is left out of an inventory.
func Skipped(m Marks, err error) schema.SkippedItem {
	item := schema.SkippedItem{Name: m.Name, Zone: m.Zone, Reason: schema.SkipUnreadable, Text: err.Error()}
	if _, copied := errors.AsType[*CopyError](err); copied {
		item.Reason = schema.SkipCopy
	}
	return item
}
