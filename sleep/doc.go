// Package sleep pauses until a time has passed or a context ends. It leaves out what
// should happen then, and tickers. Start with [For].
package sleep
