// Package hostagent is the agent verb: it wires the agent of a host on this machine or on
// Google Cloud to its store and its key. What an agent does is in agent. Start with Run.
package hostagent
