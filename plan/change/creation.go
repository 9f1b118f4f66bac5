package change

import (
	"bytes"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Creations returns the attributes of jobs that are to be created. Of a job and the one before
// it the equal ones are the same values in memory: instances of one block, of which there may
// be a million, differ in little. The zero Creations are ready to use.
type Creations struct {
	last  *schema.Job
	attrs []*plan.AttrChange // of last
}

// Of are the attributes of a job, which must not be changed.
func (c *Creations) Of(want *schema.Job) []*plan.AttrChange {
	var attrs []*plan.AttrChange
	if c.last != nil && schema.AlikeJobs(c.last, want) {
		attrs = withCommand(c.attrs, want)
	}
	if attrs == nil {
		attrs = ChangedAttrs(nil, JobAttrs(want))
	}
	attrs = shared(attrs, c.attrs)
	c.last, c.attrs = want, attrs
	return attrs
}

// commandPath is the first attribute of a job that has a command.
const commandPath = "command"

// withCommand are the attributes of a job that differs in nothing but its command from one that
// has attrs; nil if one of the two has none.
func withCommand(attrs []*plan.AttrChange, want *schema.Job) []*plan.AttrChange {
	var l attrList
	l.words(commandPath, want.Command)
	if len(l.attrs) == 0 || len(attrs) == 0 || attrs[0].Path != commandPath {
		return nil
	}
	attrs = slices.Clone(attrs)
	attrs[0] = ChangedAttrs(nil, l.attrs)[0]
	return attrs
}

// shared are attributes with those of another job in the place of equal ones. Those that
// differ do not keep the memory of the others.
func shared(attrs, others []*plan.AttrChange) []*plan.AttrChange {
	if len(others) == 0 {
		return attrs
	}
	all := len(attrs) == len(others)
	for i, a := range attrs {
		if i < len(others) && (a == others[i] || isSameCreation(a, others[i])) {
			attrs[i] = others[i]
			continue
		}
		own := *a
		attrs[i], all = &own, false
	}
	if all {
		return others
	}
	return attrs
}

func isSameCreation(a, b *plan.AttrChange) bool {
	return a.Path == b.Path && a.Verb == b.Verb && a.Sensitive == b.Sensitive && a.Unknown == b.Unknown && bytes.Equal(a.After, b.After)
}
