// Package checkpoint has the directories of a run's checkpoints: which there are, what belongs to the run in each, and how those of
// a former run are set aside.
//
// What it leaves out: the model, which the train worker writes, and names of checkpoints, which package run has. Start with Names.
package checkpoint
