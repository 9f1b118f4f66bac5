// Package console evaluates expressions against a configuration and its state, one line
// after another, from a terminal or a pipe. It takes no lease and writes nothing. Start
// with Console.
package console
