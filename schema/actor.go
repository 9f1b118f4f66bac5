package schema

import (
	"encoding/json"
	"slices"
)

// What an actor block gives to the program that hosts the actor.
const (
	ActorClassVariable   = "FRAY_ACTOR_CLASS"   // "package.module:Class", or the name that the program knows it by
	ActorArgsVariable    = "FRAY_ACTOR_ARGS"    // of its constructor, a JSON object
	ActorNamesVariable   = "FRAY_ACTOR_NAMES"   // that the actor has, a JSON list
	ActorOptionsVariable = "FRAY_ACTOR_OPTIONS" // a JSON object of what the block says besides
)

// TerminationVariable has the file in which a program of fray's own records why it
// failed, a Termination in JSON.
const TerminationVariable = "FRAY_TERMINATION_FILE"

// HostsActor reports whether the job's tasks host an actor that their environment
// names.
func (j *Job) HostsActor() bool {
	_, class := j.Environment.Env[ActorClassVariable]
	_, names := j.Environment.Env[ActorNamesVariable]
	return class || names
}

// ActorNames are the actors that the job states that it hosts: so they are known before
// they register.
func (j *Job) ActorNames() []string {
	if j == nil {
		return nil
	}
	text, ok := j.Environment.Env[ActorNamesVariable]
	var names []string
	if !ok || text.IsUnknown() || text.IsSensitive() || json.Unmarshal([]byte(text.String()), &names) != nil {
		return nil
	}
	return names
}

// ActorPort is the port that actors are called at.
const ActorPort = "actor"

// WithActorPort are the ports of a task that hosts an actor, its own first.
func WithActorPort(ports []Port) []Port {
	own := Port{Name: ActorPort}
	others := slices.DeleteFunc(slices.Clone(ports), func(p Port) bool {
		if p.Name == ActorPort {
			own = p
		}
		return p.Name == ActorPort
	})
	return append([]Port{own}, others...)
}
