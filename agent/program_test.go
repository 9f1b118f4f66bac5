package agent

import (
	"os"
	"syscall"
)

// writeProgram writes a script that is run soon. No process is started meanwhile: it would hold the open file until it runs
// its own program, and the kernel runs no file that is open for writing.
func writeProgram(file, script string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, []byte(script), 0o700)
}
