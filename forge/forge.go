package forge

// Kind is a closed set of forges.
type Kind string

// The forges.
const (
	GitHub Kind = "github"
	GitLab Kind = "gitlab"
)

// Comment is a comment of a pull request (a note of a merge request).
type Comment struct {
	ID     int64
	Author string // login of its author
	Body   string
}

// Pull is a pull request, or a merge request.
type Pull struct {
	Number int
	Head   string // the commit that it proposes now, in full
	Merge  string // the commit that merged it; "": it is not merged
	Merged bool
	Fork   bool // its commits come from another repository
}

// File is a file that a pull request changes.
type File struct {
	Path string // within the repository, as of the head
	// Lines are the lines of the head that the diff shows, as ranges; nil: they are not known,
	// as of a diff that is too large.
	Lines []Lines
}

// Lines are the lines From to To of a file, both of them included.
type Lines struct{ From, To int }

// Has reports whether a line is among the lines.
func (l Lines) Has(line int) bool { return l.From <= line && line <= l.To }

// Approval is the approval of a pull request by one person.
type Approval struct {
	By     string
	Commit string // what was approved; "": the forge does not record it
}

// Issue is an open issue.
type Issue struct {
	Number int
	Author string
	Title  string
	Body   string
	URL    string
}

// State is the state of a commit status.
type State string

// The states.
const (
	StatePending State = "pending"
	StateSuccess State = "success"
	StateFailure State = "failure" // what was checked is not as it should be
	StateError   State = "error"   // it could not be checked
)

// Status is what is reported of a commit.
type Status struct {
	// Context tells statuses of one commit apart: a later one of the same context takes the
	// place of an earlier one. For example "fray/plan: train (prod)".
	Context     string
	State       State
	Description string // one line; it is cut where the forge has a limit
	URL         string // where more is known; "": nowhere
}
