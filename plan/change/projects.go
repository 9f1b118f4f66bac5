package change

import (
	"github.com/fray-ml/fray/state"
)

// What becomes of files.
const (
	FileAdded   = state.FileAdded
	FileChanged = state.FileChanged
	FileRemoved = state.FileRemoved
)

// maxNamedFiles is how many files causes name.
const maxNamedFiles = 5
