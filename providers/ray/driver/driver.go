// Package driver holds the program that Ray runs for a slice: fray_driver.py, in Python with
// the standard library and Ray only. The provider ships it with fray's own program.
package driver

import _ "embed"

// Name is the file name of the program in its package.
const Name = "fray_driver.py"

// Source is the program.
//
//go:embed fray_driver.py
var Source []byte

// The exit statuses by which the program states why a slice has ended.
const (
	ExitLost       = 71 // a node of the slice died
	ExitWithdrawn  = 72 // a later submission of the slice exists
	ExitHostFailed = 73 // a node cannot run an agent
	ExitNoFence    = 74 // the list of jobs could not be read
)
