package cloud

import "time"

// Operation is a long-running operation at one moment.
type Operation struct {
	Name    string // unique, without project and zone
	Project string
	Zone    string
	Kind    Kind   // of the target
	Verb    string // "create", "delete", "update", "start", "stop", or Compute's types
	Target  string // name of the target
	Created time.Time
	Ended   time.Time // zero while it is open
	Err     *Error
	// CancelRequested is set once a client has asked for it.
	CancelRequested bool
	Group           *Group   // the group when it ended well, nil without one
	Request         *Request // the queued resource when it ended well, nil without one
	Progress        int      // percent
}

// Done reports whether it has ended, well or not.
func (o Operation) Done() bool { return !o.Ended.IsZero() }
