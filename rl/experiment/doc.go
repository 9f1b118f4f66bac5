// Package experiment writes the metrics of a run: to the console, as JSON lines, and as event files of TensorBoard.
// Weights & Biases has no Go library: package roles sends its records to a Python actor.
//
// What it leaves out: what is measured. Start with Logger.
package experiment
