// Package review decides what a pull request is shown of a plan, and whether: the comment
// with its hidden marker, the summary, outputs, annotations and the exit code of a job.
// It reads no environment and calls no forge: pipeline does. Start with Report and Choose.
package review
