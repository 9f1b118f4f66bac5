// Package report writes the result of a rehearsal for people: goodput, jobs, what was
// lost and to what. It measures nothing. Start with Text.
package report
