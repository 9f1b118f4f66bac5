// Package agent is what runs on every host of a slice: it reports in, reads the
// slice's assignment, and runs this host's task of it.
//
// It starts and ends processes, builds their environment (bundles, uv), hands
// them their variables, ships their output, checks their health and says what
// became of them. It decides nothing: whether a task is tried again, and where,
// is plan's. It makes no slices either; providers do.
//
// A task runs under a shim, a process of its own that outlives the agent, so
// that an agent that dies loses nothing: the next one takes the task over. What
// both know is in files of the host's directory:
//
//	agent.lock           held by the agent while it lives; its pid
//	task.lock            held by the shim while it lives; its pid and grace
//	agent.json           highest assignment seen and carried out
//	tasks/<key>/         one start of one task: task.json is the intent,
//	                     process.json, stop.json, exit.json and report.json follow
//	bundles/<sha256>/    unpacked projects, the tasks' working directories
//	callables/<sha256>   pickled callables
//	execs/<nonce>        one command that runs beside a task
//	dirty                there may be processes that only an agent can find
//	preempted            makes the agent take the host for preempted
//
// Where a job names an image, the command that the shim runs is the client of a
// container runtime; see container.go.
//
// It also serves: the cluster API to its tasks, passed on to whichever controller
// leads (proxy.go), and to the controller and users the host itself, with its
// logs and commands beside its tasks (api.go).
//
// Start with [Run], then task.go for the life of a task, and [RunShim].
package agent
