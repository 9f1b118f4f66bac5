// Package state is the stack's document: what was asked for, what was carried
// out, and what came of it. Beside it are the types of the mailbox between
// controller and agents ([Assignment], [HostReport]) and of events. It is pure:
// types, codec and upgrades, and the key that seals secrets; where documents are
// kept is state/store.
//
// Start with [Document].
package state

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

// FormatVersion is the version of the document that this fray writes.
const FormatVersion = 4

// Document is everything the stack remembers. Values reached through its maps
// are never changed in place: a transition copies the document ([Document.Clone])
// and puts new values in.
type Document struct {
	FormatVersion int    `json:"format_version"`
	FrayVersion   string `json:"fray_version"` // that wrote it
	Lineage       string `json:"lineage"`      // random, for the stack's whole life
	Serial        uint64 `json:"serial"`       // rises with every write
	Epoch         uint64 `json:"epoch"`        // of the lease under which it was written
	Nonce         string `json:"nonce"`        // of the write, settles ambiguous replies

	// Revision counts accepted plans; Desired is what the last one asked for.
	Revision uint64         `json:"revision"`
	Desired  schema.Desired `json:"desired"`
	Origin
	// Variables are digests of the values that variables had at the last apply, nil where
	// they are not known.
	Variables *Variables `json:"variables,omitempty"`

	// Resources are the namespaces, reservations and job groups as carried out.
	Resources map[schema.Address]Resource `json:"resources,omitempty"`
	Slices    map[string]*Slice           `json:"slices,omitempty"` // by name
	Jobs      map[schema.Address]*Job     `json:"jobs,omitempty"`
	Outputs   map[string]schema.Output    `json:"outputs,omitempty"`
	// ZoneHealth is what was learnt of places where capacity was rejected or lost
	// soon, by zone or region, type and tier. Those that are well have none.
	ZoneHealth map[string]ZoneHealth `json:"zone_health,omitempty"`

	// Conditions are what was amiss with providers when they were last asked.
	// Those that were seen whole have none.
	Conditions map[schema.ProviderName]ProviderCondition `json:"conditions,omitempty"`

	Former
	// Paused says that nothing is to be changed for now, nil: it is not.
	Paused *Pause `json:"paused,omitempty"`

	Storage
	// Unmanaged are the slices that `fray state rm` left running, by name.
	Unmanaged map[string]Unmanaged `json:"unmanaged,omitempty"`
}

// Storage is how and where the document is kept.
type Storage struct {
	// LocalPlace is the machine and directory where the slices of provider
	// local live, when the state itself is kept elsewhere.
	LocalPlace string `json:"local_place,omitempty"`
	// MovedTo is where the state is kept now, "" while that is here: this one
	// is only what was left behind.
	MovedTo string `json:"moved_to,omitempty"`
	// Journal says that this document is a snapshot, after which the changes are in a
	// journal; nil: the document is all there is, as for every document that was read
	// with its journal.
	Journal *Journal `json:"journal,omitempty"`
}

// Former is what is not there any more and what clients still ask for, and what was used.
type Former struct {
	// Past are launched jobs whose name was taken by a newer one, by id, as they ended.
	Past map[string]*Job `json:"past,omitempty"`
	// RemovedActors are actors that the configuration declares no more, by the id of the job that hosted them.
	RemovedActors map[string]RemovedActors `json:"removed_actors,omitempty"`
	// Overrides are the policies that were overridden for accepted plans, oldest first; at
	// most MaxOverrides, the newest.
	Overrides []Override `json:"overrides,omitempty"`
	// Metering is what is known of the time that slices are paid for, nil: nothing yet.
	Metering *Metering `json:"metering,omitempty"`
}

// Override is on record for a plan that was carried out although a policy denies it.
type Override struct {
	Policy   string    `json:"policy"`
	By       string    `json:"by"` // who overrode it
	Reason   string    `json:"reason"`
	Revision uint64    `json:"revision"` // as which the plan was accepted
	At       time.Time `json:"at"`
}

// MaxOverrides is how many overrides a document remembers.
const MaxOverrides = 200

// WithOverrides are recorded overrides and those of the plan that is accepted now.
func WithOverrides(recorded, now []Override, revision uint64) []Override {
	if len(now) == 0 {
		return recorded
	}
	all := slices.Clone(recorded)
	for _, o := range now {
		o.Revision = revision
		all = append(all, o)
	}
	return all[max(0, len(all)-MaxOverrides):]
}

// RemovedActors are actors of one declared job, and why they are gone.
type RemovedActors struct {
	Namespace string    `json:"namespace"`
	Names     []string  `json:"names"`
	At        time.Time `json:"at"`
	By        string    `json:"by,omitempty"` // who removed them from the configuration, "" if that is not known
}

// Unmanaged is a slice that carries the stack's mark and is none of its
// business any more: it is neither adopted nor deleted.
type Unmanaged struct {
	Spec schema.SliceSpec `json:"spec"`
	At   time.Time        `json:"at"`
	By   string           `json:"by"` // who released it
}

// Pause is who stopped the loop from acting, and why.
type Pause struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// Launch is how a job, group or reservation came about that no file declares:
// a program or a user asked for it. It stays until it has ended and is
// forgotten, or its parent takes it along.
type Launch struct {
	Name string `json:"name"` // as asked for
	// Request is the id of the request, by which it is told when asked again.
	Request string    `json:"request,omitempty"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"` // the user; "" for a job's
	// Parent is the id of the job that launched it, "" for none, ParentAttempt
	// the attempt of that job which did.
	Parent        string `json:"parent,omitempty"`
	ParentAttempt int    `json:"parent_attempt,omitempty"`
	// Session is that of the client that launched it and with which it ends, "" for none.
	Session string `json:"session,omitempty"`
	// Detached says that it outlives its parent.
	Detached bool `json:"detached,omitempty"`
	// ReleasedAt is when a reservation was given up, zero before.
	ReleasedAt time.Time `json:"released_at,omitzero"`
}

// ZoneHealth is the health of a place that has failed.
type ZoneHealth struct {
	Kind     schema.ErrorKind `json:"kind"`
	Reason   string           `json:"reason"`
	Failures int              `json:"failures"` // in a row
	At       time.Time        `json:"at"`       // of the last
	Until    time.Time        `json:"until"`    // when it is tried again
	// Successes are the slices that came up since the first failure, Succeeded whether
	// one did since the last.
	Successes int  `json:"successes,omitempty"`
	Succeeded bool `json:"succeeded,omitempty"`
}

// ProviderCondition is what keeps a provider's slices from being known.
type ProviderCondition struct {
	// Unseen says that the provider could not be asked for its slices, nil: it could.
	Unseen *Unseen `json:"unseen,omitempty"`
	// Missing says that many slices disappeared from its list at once and are not
	// confirmed to be gone, nil: none did.
	Missing *Missing `json:"missing,omitempty"`
	// Skipped are the items of its list that are no slices of this stack or cannot
	// be read.
	Skipped []schema.SkippedItem `json:"skipped,omitempty"`
}

// Unseen is since when a provider cannot be asked for its slices, and why.
type Unseen struct {
	Since time.Time        `json:"since"`
	Kind  schema.ErrorKind `json:"kind"`
	Text  string           `json:"text"`
}

// Missing is a mass disappearance: so many slices of those that lived were in no
// list any more at once.
type Missing struct {
	Since  time.Time `json:"since"`
	Slices int       `json:"slices"`
	Of     int       `json:"of"`
}

// Resource is a declaration without processes of its own, as carried out.
// Exactly one of the specs is set.
type Resource struct {
	Digest      schema.Digest       `json:"digest"`
	Since       time.Time           `json:"since,omitzero"` // it was made or changed
	Launch      *Launch             `json:"launch,omitempty"`
	Causes      *ChangeCauses       `json:"causes,omitempty"` // why it is to change
	Namespace   *schema.Namespace   `json:"namespace,omitempty"`
	Reservation *schema.Reservation `json:"reservation,omitempty"`
	Group       *schema.JobGroup    `json:"group,omitempty"`
	// Notification is where the controller reports what happens.
	Notification *schema.Notification `json:"notification,omitempty"`
}

// Slice is a slice that was asked for and is not known to be gone.
type Slice struct {
	Spec schema.SliceSpec `json:"spec"`
	// PendingSince is when its creation was requested, zero before; once it is listed,
	// when that was first seen.
	PendingSince time.Time `json:"asked_at"`
	// Listed: an inventory has listed it since.
	Listed bool `json:"seen,omitempty"`
	// Terminating is why it is to be deleted, zero if it is to stay.
	Terminating Termination `json:"terminating,omitzero"`
	// Failed is how the last call about it failed, "" if it did not, and Error what
	// it said, for people; Tries counts such calls in a row, and RetryAt is when the
	// next may be made.
	Failed  schema.ErrorKind `json:"failed,omitempty"`
	Error   string           `json:"error,omitempty"`
	Tries   int              `json:"tries,omitempty"`
	RetryAt time.Time        `json:"retry_at,omitzero"`
	// OverQuota says that the call failed for a quota that is used up.
	OverQuota bool `json:"over_quota,omitempty"`
	// Queued says that it waits in the cloud's queue and has no machines yet.
	Queued bool `json:"queued,omitempty"`
	// Preempted: its provider reported that its machines were taken away.
	Preempted bool `json:"taken,omitempty"`
	// UpAt is when all its hosts had reported in.
	UpAt time.Time `json:"born_at,omitzero"`
	// Deletions counts the calls that asked for its end while its provider
	// said that it was going; DeleteAt is when to call again.
	Deletions int `json:"deletions,omitempty"`
	// IdleSince is since when no job has held it, zero while one does.
	IdleSince time.Time `json:"idle_since,omitzero"`
	DeleteAt  time.Time `json:"delete_at,omitzero"`
	// Edited is what was last listed of it as schema.SliceStatus.Edited.
	Edited []string `json:"edited,omitempty"`
}

// Job is a job instance as carried out.
type Job struct {
	ID     string        `json:"id"` // globally unique, FRAY_JOB_ID
	Spec   *schema.Job   `json:"spec"`
	Digest schema.Digest `json:"digest"` // of Spec
	// Launch is nil for a declared job.
	Launch *Launch `json:"launch,omitempty"`
	// Causes are why Spec is to change.
	Causes *ChangeCauses `json:"causes,omitempty"`
	// AdmittedAt is when it began to wait for its turn, EndedAt when it ended.
	AdmittedAt time.Time `json:"admitted_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`

	Status schema.JobStatus `json:"status"`
	Reason string           `json:"reason,omitempty"` // why it is pending, failed or stopped
	// Ready says that all tasks run and are healthy.
	Ready bool `json:"ready,omitempty"`
	// Slices are the names of those it holds, in slice order.
	Slices []string `json:"slices,omitempty"`
	// Staged are the names of those that will take their place (create_before_destroy).
	Staged []string `json:"staged,omitempty"`
	// Choice is nil of a job without alternatives, and before it was given slices.
	Choice *Choice `json:"choice,omitempty"`

	Attempt     int       `json:"attempt"`  // number of the last attempt, 0 before the first
	Attempts    []Attempt `json:"attempts"` // the last ones, newest last
	Failures    int       `json:"failures"`
	Preemptions int       `json:"preemptions"`
	// UnknownEnds counts attempts of which nothing says how they ended.
	UnknownEnds int `json:"unknown_ends,omitempty"`
	// Streak counts attempts in a row that ended too soon; it sets the backoff.
	Streak  int       `json:"streak,omitempty"`
	RetryAt time.Time `json:"retry_at,omitzero"`

	JobRequests
}

// JobRequests are what is asked of a job besides its spec, until it is done, and the runs that
// its schedule asks for.
type JobRequests struct {
	// Scheduled is nil of a job without a schedule.
	Scheduled *ScheduledRuns `json:"scheduled,omitempty"`
	// Replace asks for new slices and a fresh start, once.
	Replace bool `json:"replace,omitempty"`
	// Stop asks for the job to end and stay so; StopBy is who asked, "" if that was not recorded.
	Stop   bool   `json:"stop,omitempty"`
	StopBy string `json:"stop_by,omitempty"`
	// RemovedBy is who removed the job from the configuration, "" if it is declared or that is not known.
	RemovedBy string `json:"removed_by,omitempty"`
	// YieldsTo is the job that its slices are given up for, zero if they are
	// not; Yields counts how often it has done so. That spends no budget.
	YieldsTo schema.Address `json:"yields_to,omitzero"`
	Yields   int            `json:"yields,omitempty"`
}

// MaxAttempts is how many attempts a job remembers.
const MaxAttempts = 20

// Attempt is one try at running all tasks of a job instance.
type Attempt struct {
	Number     int       `json:"number"`
	Generation int64     `json:"generation"` // of its assignments
	Why        string    `json:"why"`        // why it began
	StartedAt  time.Time `json:"started_at"`
	ReadyAt    time.Time `json:"ready_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	// StopGeneration is that of the assignments which end it, 0 before.
	StopGeneration int64 `json:"stop_generation,omitempty"`
	// StoppingSince is when it began to be stopped, and Stop why.
	StoppingSince time.Time         `json:"stopping_since,omitzero"`
	Stop          schema.StopReason `json:"stop,omitempty"`
	// Outcome is "" while the attempt goes on. While StopGeneration is set
	// and Outcome "", Cause holds what the outcome will be unless hosts turn
	// out to be lost.
	Outcome schema.TaskState `json:"outcome,omitempty"`
	Cause   schema.TaskState `json:"cause,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	// EndedBy is the index of the task that ended otherwise than with success
	// before all others, and so ended the attempt; nil: no task did.
	EndedBy *int `json:"ended_by,omitempty"`
	// Changed are the attributes of the job by whose change it was ended, nil if
	// something else ended it.
	Changed []string `json:"changed,omitempty"`
	// Causes are why these changed.
	Causes *ChangeCauses `json:"causes,omitempty"`
	// Resumed says that it was found running, by a controller that had begun to
	// lead after it was started and before that was recorded.
	Resumed bool `json:"resumed,omitempty"`
	// ScheduledRun is the run that it belongs to, of a job with a schedule.
	ScheduledRun
	// Slices are where it runs, in slice order; Tasks in task order.
	Slices []string `json:"slices"`
	Tasks  []Task   `json:"tasks,omitempty"`
}

// Task is the last known state of one task of an attempt.
type Task struct {
	Slice    string           `json:"slice"`
	Host     int              `json:"host"`
	Address  string           `json:"address,omitempty"`
	State    schema.TaskState `json:"state"`
	ExitCode *int             `json:"exit_code,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Ports    map[string]int   `json:"ports,omitempty"`
	Tail     []string         `json:"tail,omitempty"`
	Started  bool             `json:"started,omitempty"`
	BadHost  bool             `json:"bad_host,omitempty"` // it found its host broken
	// EndedAt is when its last process ended, by its host's clock.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Termination is what a program of fray's own recorded about why it failed, nil
	// of others.
	Termination *schema.Termination `json:"termination,omitempty"`
	// Hook is how the job's before_stop went, nil where it did not run.
	Hook *schema.HookResult `json:"before_stop,omitempty"`
}

// Stack is the mark that everything this stack creates carries.
func (d *Document) Stack() string { return d.Lineage[:min(len(d.Lineage), 12)] }

// Clone copies the document so that its maps may be changed without touching d.
func (d *Document) Clone() *Document {
	c := d.CloneAround()
	c.Slices = CloneMap(d.Slices)
	c.Jobs = CloneMap(d.Jobs)
	return c
}

// CloneAround is Clone with the same maps of jobs and slices, which are large: a caller
// clones them before it changes them.
func (d *Document) CloneAround() *Document {
	c := *d
	c.Resources = CloneMap(d.Resources)
	c.Outputs = CloneMap(d.Outputs)
	c.Unmanaged = CloneMap(d.Unmanaged)
	c.ZoneHealth = CloneMap(d.ZoneHealth)
	c.Conditions = CloneMap(d.Conditions)
	c.Past = CloneMap(d.Past)
	c.RemovedActors = CloneMap(d.RemovedActors)
	return &c
}

// CloneMap is a copy of a map, an empty one of none.
func CloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

// End is when a job ended: when its last attempt did, if that ended it, which may
// be long before it was recorded. It is zero for one that goes on.
func (j *Job) End() time.Time {
	last := j.Last()
	if !j.Status.Ended() || last == nil || last.EndedAt.IsZero() || last.EndedAt.After(j.EndedAt) {
		return j.EndedAt
	}
	return last.EndedAt
}

// Last returns the job's newest attempt, nil before the first.
func (j *Job) Last() *Attempt {
	if len(j.Attempts) == 0 {
		return nil
	}
	return &j.Attempts[len(j.Attempts)-1]
}

// Running reports whether the newest attempt has no outcome yet.
func (j *Job) Running() bool {
	last := j.Last()
	return last != nil && last.Outcome == ""
}

// HasSecrets reports whether anything in the document is sealed, and so
// unreadable without the stack's key.
func (d *Document) HasSecrets() bool {
	for _, o := range d.Outputs {
		if o.Sensitive {
			return true
		}
	}
	for _, j := range d.Jobs {
		if j.Spec.HasSecrets() {
			return true
		}
	}
	for _, r := range d.Resources {
		if r.Notification != nil {
			return true
		}
	}
	return false
}
