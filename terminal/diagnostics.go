package terminal

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
)

// FilesOf are the files of a source, nil for none.
func FilesOf(src *lang.Source) map[string]*hcl.File {
	if src == nil {
		return nil
	}
	return src.Files()
}

// ErrorsOf leaves out warnings, which fray validate and fray plan are for.
func ErrorsOf(diags hcl.Diagnostics) hcl.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d *hcl.Diagnostic) bool { return d.Severity != hcl.DiagError })
}
