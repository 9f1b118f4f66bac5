package configuration

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/modules"
)

// Parse reads a configuration with the modules that are installed.
func Parse(paths []string) (*lang.Source, hcl.Diagnostics) {
	return lang.Parser{Modules: &modules.Installed{}}.Parse(paths)
}
