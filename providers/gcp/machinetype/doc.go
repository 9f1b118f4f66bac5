// Package machinetype chooses the machine type, the image and the boot disk of a slice
// on Compute Engine.
//
// It leaves out whether a zone offers them. Start with [Of].
package machinetype
