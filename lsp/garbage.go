package lsp

import "runtime/debug"

// Most of the heap are the parsed files, 85 MB for 5,000 blocks, and each collection of the
// garbage beside them may delay a keystroke. Above the limit it is collected as often as it takes.
const (
	garbagePercent = 400
	memoryLimit    = 1 << 30
)

// CollectLess makes the process collect its garbage less often, until restore is called.
func CollectLess() (restore func()) {
	percent, limit := debug.SetGCPercent(garbagePercent), debug.SetMemoryLimit(memoryLimit)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
