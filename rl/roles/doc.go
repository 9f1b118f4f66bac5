// Package roles hosts the roles of a reinforcement learning run as actors, each around its state machine: it has the
// locks, the clock, the journals and the calls of others that the machines leave out.
//
// Serve is a process with several of them. Actors find each other by the names of their roles (package peer), so that a role
// may be in another process, or a class of Python. Each change of a stateful role is in its journal before it is
// answered.
//
// What it leaves out: deciding. Start with Serve.
package roles
