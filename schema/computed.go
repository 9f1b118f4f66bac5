package schema

// DefaultWorkspace is the workspace where none is chosen.
const DefaultWorkspace = "default"

// Computed holds one instance's values that are known only after apply. What
// is empty is not known yet.
type Computed struct {
	ID        string         // job id
	Addresses []string       // of the tasks, in task order
	Ports     map[string]int // of task 0
	Slices    []string       // names
	Status    JobStatus
}
