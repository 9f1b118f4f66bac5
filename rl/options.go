package rl

// LaunchMode is where a run's roles are started.
type LaunchMode string

// The launch modes.
const (
	LaunchLocal LaunchMode = "local"
	LaunchRay   LaunchMode = "ray"
	LaunchFray  LaunchMode = "fray" // by the jobs of a fray cluster
)

// ParseLaunchMode returns the launch mode of a word.
func ParseLaunchMode(text string) (LaunchMode, error) {
	return parse("launch mode", text, []LaunchMode{LaunchLocal, LaunchRay, LaunchFray})
}

// Readiness is when a trajectory pool has a batch to give.
type Readiness string

// The readiness functions.
const (
	// BatchSizeReached is ready with batch_size samples and gives exactly those that came first.
	BatchSizeReached Readiness = "batch_size_reached"
	// LoadedBatchFinished is ready once all that was loaded is rolled out, and gives all of it.
	LoadedBatchFinished Readiness = "loaded_batch_finished"
	// BatchSizeReachedAndLoadedBatchFinished is ready when both are, and gives batch_size samples.
	BatchSizeReachedAndLoadedBatchFinished Readiness = "batch_size_reached_and_loaded_batch_finished"
)

// ParseReadiness returns the readiness function of a name. "batch_size" is another name of
// BatchSizeReached.
func ParseReadiness(text string) (Readiness, error) {
	if text == "batch_size" {
		return BatchSizeReached, nil
	}
	return parse("check_batch_ready_function", text,
		[]Readiness{BatchSizeReached, LoadedBatchFinished, BatchSizeReachedAndLoadedBatchFinished})
}

// IncompletePolicy is what becomes of groups that can no longer reach group_size.
type IncompletePolicy string

// The policies: they are released as they are, or dropped.
const (
	Flush IncompletePolicy = "flush"
	Drop  IncompletePolicy = "drop"
)

// ParseIncompletePolicy returns the policy of a word.
func ParseIncompletePolicy(text string) (IncompletePolicy, error) {
	return parse("policy of incomplete groups", text, []IncompletePolicy{Flush, Drop})
}

// SyncMode is when rollouts wait for new weights.
type SyncMode string

// The sync modes.
const (
	Sync       SyncMode = "sync"
	BatchAsync SyncMode = "batch-async"
	FullyAsync SyncMode = "fully-async"
)

// ParseSyncMode returns the sync mode of a word.
func ParseSyncMode(text string) (SyncMode, error) {
	return parse("sync_mode", text, []SyncMode{Sync, BatchAsync, FullyAsync})
}

// RolloutStatus is whether a rollout may ask its inference service.
type RolloutStatus string

// The answers of check_rollout_service_status.
const (
	Continue RolloutStatus = "continue"
	Block    RolloutStatus = "block"
)

// ResumeMode is where a run begins.
type ResumeMode string

// The resume modes: from scratch, from the newest checkpoint, from a given one.
const (
	ResumeDisable  ResumeMode = "disable"
	ResumeAuto     ResumeMode = "auto"
	ResumeFromPath ResumeMode = "from_path"
)

// ParseResumeMode returns the resume mode of a word.
func ParseResumeMode(text string) (ResumeMode, error) {
	return parse("resume mode", text, []ResumeMode{ResumeDisable, ResumeAuto, ResumeFromPath})
}

// ErrorPolicy is what a run does about errors that its modules report.
type ErrorPolicy string

// The error policies.
const (
	StopOnError    ErrorPolicy = "stop_on_error"
	StopOnCritical ErrorPolicy = "stop_on_critical"
	ContinueOnAny  ErrorPolicy = "continue"
)

// ParseErrorPolicy returns the error policy of a word.
func ParseErrorPolicy(text string) (ErrorPolicy, error) {
	return parse("policy of exception handling", text, []ErrorPolicy{StopOnError, ContinueOnAny, StopOnCritical})
}

// Severity is how grave a reported error is.
type Severity string

// The severities.
const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// ParseSeverity returns the severity of a word.
func ParseSeverity(text string) (Severity, error) {
	return parse("severity", text, []Severity{SeverityInfo, SeverityWarning, SeverityError})
}

// Health is what the recent errors of a run amount to.
type Health string

// The states of health.
const (
	Healthy       Health = "healthy"
	HealthWarning Health = "warning"
	HealthError   Health = "error"
)

// ParseHealth returns the health of a word.
func ParseHealth(text string) (Health, error) {
	return parse("health", text, []Health{Healthy, HealthWarning, HealthError})
}

// Recovery is what a run does after a stateful role has died.
type Recovery string

// The recovery policies.
const (
	// RecoverJournal has each role write what it acknowledges before it answers, and replay it.
	RecoverJournal Recovery = "journal"
	// RecoverCheckpoint has the run go back to its last checkpoint.
	RecoverCheckpoint Recovery = "checkpoint"
)

// ParseRecovery returns the recovery policy of a word.
func ParseRecovery(text string) (Recovery, error) {
	return parse("recovery", text, []Recovery{RecoverJournal, RecoverCheckpoint})
}

// LoggerBackend is where metrics go.
type LoggerBackend string

// The logger backends.
const (
	LogConsole     LoggerBackend = "console"
	LogJSONL       LoggerBackend = "jsonl"
	LogTensorboard LoggerBackend = "tensorboard"
	LogWandb       LoggerBackend = "wandb"
)

// ParseLoggerBackend returns the logger backend of a word.
func ParseLoggerBackend(text string) (LoggerBackend, error) {
	return parse("logger backend", text, []LoggerBackend{LogConsole, LogJSONL, LogTensorboard, LogWandb})
}
