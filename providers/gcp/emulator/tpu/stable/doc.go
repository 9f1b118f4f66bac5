// Package stable serves the Cloud TPU API v2 by a server of v2alpha1. Both versions
// have the same calls; messages of v2 lack some fields and have others at other
// numbers. [New] derives the descriptors of v2 from those of v2alpha1 by a table
// of these differences (descriptor.go). [API.Register] carries each call out as the one
// of v2alpha1 (service.go); [API.Operations] serves the operations that came of calls of v2.
//
// It leaves out all that a call does. Start with [New].
package stable
