// Package terminal is how fray talks to people: standard input, output and error,
// colours, questions, diagnostics, the first and the second Ctrl-C, and the exit codes
// of errors. It knows no stack and no verb. Start with Terminal.
package terminal
