// Package agent is what runs on every host of a slice: it reports in, reads the
// slice's assignment, and runs this host's task of it.
//
// It starts and ends processes, builds their environment (bundles, uv), hands
// them their variables, ships their output, checks their health and reports what
// became of them. It decides nothing: whether a task is tried again, and where,
// is plan's. It makes no slices either; providers do.
//
// This package is the loop that puts the rooms below it together. Each room imports
// only rooms of the lines after its own:
//
//	agent                                    the loop, packed tasks, following the state to another store
//	hostapi                                  what the host serves
//	task                                     the life of one task
//	artifact, container, uv                  what is prepared for a task
//	shim, execution                          processes of tasks and beside them
//	environment, health, logs, outcome       what follows from records and for commands
//	identities, mailbox, notice, ports, proxy
//	hostdir                                  the files of a host
//	tree, record, command, process           files and processes of any machine
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
//	packed/<slice>/      the same again for a packed task, a slice that has a part of this host
//	dirty                there may be processes that only an agent can find
//	preempted            makes the agent take the host for preempted
//
// Start with [Run] and the method loop, then package task for the life of a task and
// package shim for its supervisor.
package agent
