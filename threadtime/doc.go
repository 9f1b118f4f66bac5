// Package threadtime measures the processor time of a thread, which load by others does not change. It is
// for benchmarks and leaves out what they make of it. Start with [Used].
package threadtime
