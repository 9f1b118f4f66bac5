package store

import "fmt"

// Keys of the stack's objects.
const (
	StateKey    = "state.json"
	LeaseKey    = "lease.json"
	HandoverKey = "handover.json"

	AssignPrefix  = "assign/"
	HostsPrefix   = "hosts/"
	BootPrefix    = "boot/"
	LogsPrefix    = "logs/"
	BundlesPrefix = "bundles/"
	// EndpointsKey is the registry of actors, EventsPrefix what happened.
	EndpointsKey = "endpoints.json"
	EventsPrefix = "events/"
	// JournalPrefix is of the changes of a large state since its snapshot, StateKey.
	JournalPrefix = "journal/"
	// NoticesKey is what the receivers of notifications were told and are to be told.
	NoticesKey = "notices.json"
)

// JournalKey is one of the objects that entries of the state's journal are written to in turn.
func JournalKey(slot int) string { return fmt.Sprintf("%s%03d.json", JournalPrefix, slot) }

// AssignKey is where a slice's assignment is.
func AssignKey(slice string) string { return AssignPrefix + slice + ".json" }

// HostKey is where the agent of one host reports.
func HostKey(slice string, host int) string {
	return fmt.Sprintf("%s%s/%d.json", HostsPrefix, slice, host)
}

// HostsOf is the prefix of a slice's host reports.
func HostsOf(slice string) string { return HostsPrefix + slice + "/" }

// BootKey is where a machine of a slice states how far it has come, until its agent reports:
// under the number of its host, or under its own name where it has no number.
func BootKey(slice, machine string) string { return BootOf(slice) + machine }

// BootOf is the prefix of what the machines of a slice state.
func BootOf(slice string) string { return BootPrefix + slice + "/" }

// LogKey is one chunk of a task's output. Chunks are numbered from 0; only the
// last one grows, by being written again with more at its end.
func LogKey(job string, attempt, task, chunk int) string {
	return fmt.Sprintf("%s%08d", LogsOf(job, attempt, task), chunk)
}

// LogsOf is the prefix of the chunks of one task of one attempt.
func LogsOf(job string, attempt, task int) string {
	return fmt.Sprintf("%s%d/%d/", LogsOfJob(job), attempt, task)
}

// LogTimesKey is when what is in a chunk was written, as [logtime] encodes it. Some of the
// chunk's end may be without a time yet.
func LogTimesKey(job string, attempt, task, chunk int) string {
	return fmt.Sprintf("%s%08d", logTimesOf(job, attempt, task), chunk)
}

func logTimesOf(job string, attempt, task int) string {
	return fmt.Sprintf("%s%d/%d.times/", LogsOfJob(job), attempt, task)
}

// LogPrefixes are those of the chunks of one task of one attempt and of their times.
func LogPrefixes(job string, attempt, task int) []string {
	return []string{LogsOf(job, attempt, task), logTimesOf(job, attempt, task)}
}

// LogsOfJob is the prefix of all logs of a job instance, by its id: its address
// may change, and be another job's later.
func LogsOfJob(job string) string { return LogsPrefix + keyPart(job) + "/" }

// BundleKey is where a project bundle or agent binary is.
func BundleKey(sha256 string) string { return BundlesPrefix + sha256 }
