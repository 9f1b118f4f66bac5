package load

import (
	"github.com/hashicorp/hcl/v2"
)

// libraryFinding is what a diagnostic of the HCL library means here, as far as
// something follows from it. It is a closed set.
type libraryFinding int

const (
	libraryOther       libraryFinding = iota
	libraryNotAnObject                // a JSON file is a list, a number or a string at its top
)

// libraryCause reads what the library distinguishes by its summaries only: see
// https://github.com/hashicorp/hcl/blob/v2.25.0/json/public.go and structure.go,
// where they are made.
func libraryCause(d *hcl.Diagnostic) libraryFinding {
	switch d.Summary {
	case "Root value must be object", "Incorrect JSON value type":
		return libraryNotAnObject
	}
	return libraryOther
}
