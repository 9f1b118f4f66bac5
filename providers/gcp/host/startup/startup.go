// Package startup holds the script that machines of Google Cloud run at every boot: it
// fetches fray's program from the stack's bucket by its hash and keeps an agent running.
// It leaves out what a machine is a host of, which its metadata has. Start with startup.sh.
package startup

import _ "embed"

// Script is the script, for sh.
//
//go:embed startup.sh
var Script string
