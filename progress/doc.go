// Package progress shows on a terminal what the steps of a change do and what they wait
// for: lines in a log, one line that is redrawn on a terminal. It decides nothing. Start
// with Progress.
package progress
