// Package rl holds the types that all parts of a reinforcement learning run share: roles, tasks,
// trajectories' headers, batches, and the closed sets of words of its configuration.
//
// The machines are in packages below it: loader, trajectory, trainbatch, validation, weights, activity
// and run decide, and package roles hosts them as actors. A trajectory's values are packed by Python and
// are bytes here; Go reads headers only.
//
// What it leaves out: anything that decides. Start with Header and Task.
package rl
