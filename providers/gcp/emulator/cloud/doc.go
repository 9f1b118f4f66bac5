// Package cloud is the emulator's model of Google Cloud: what runs where, who
// holds which capacity and quota, and when groups come up, fail late, are
// preempted or never go away. It speaks no protocol; package emulator puts the
// TPU API and Compute Engine on top of it.
//
// A [Cloud] holds groups: a [Group] is capacity that lives and dies as a whole, a
// TPU node, a virtual machine or a managed instance group. [Cloud.Allocate]
// asks for one and answers with an open [Operation]; everything later happens by
// timers on the [Clock]. A [Request] is a queued resource: it waits for
// capacity, then makes groups. Machines power on and off through [Hosts], which
// is called in order and never with the model's lock held.
//
// What an API shows may differ from what is: [Group.Shown] is the state to
// answer with, [Group.State] the truth. Every Group, Request and Operation that
// is handed out is a copy that never changes; a Group that has not changed is
// the same pointer, so that a server may cache what it makes of it.
//
// What goes wrong is in a [Scenario], the zero value of which is a cloud without faults
// and with plenty of capacity. With a [Virtual] clock and the same seed the same calls
// have the same effects.
//
// Start with [Cloud.Allocate] and [Spec]; servers call [Cloud.Admit] before each
// call for latency, failures, permissions and rate limits. A Cloud is composed of
// parts, each of which uses those before it only: runner (lock, clock, calls out of
// the model), rules (the scenario with its defaults), accounts (capacity and quotas),
// operations, admission (calls before they are carried out, wrong lists), lifecycle
// (what happens to groups), groups (what callers do to them), queue (queued
// resources); scripts and audits are Cloud's own.
package cloud
