// Package ended is the record of a run's end, the file ended.json of its directory: processes of the run that are started later
// find it, and end at once instead of beginning the run again.
//
// What it leaves out: when a run ends, which is package run, and who writes and reads the record, which is package roles. Start
// with Record.
package ended
