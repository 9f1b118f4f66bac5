package eval

import (
	"fmt"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
)

// versionMismatch checks the required_version of a fray block.
func versionMismatch(b *configs.Block, installed string) *hcl.Diagnostic {
	x := b.Attr("required_version")
	if x == nil {
		return nil
	}
	val, diags := x.Expr.Value(nil)
	if diags.HasErrors() {
		return diagnose.ErrorAt(x.Expr.Range(), "Invalid value for required_version", "Write a plain string, such as \"~> 0.1\": it is read before everything else.")
	}
	if val.IsNull() {
		return nil
	}
	if !as.IsPlainString(val) {
		return diagnose.ErrorAt(x.Expr.Range(), "Invalid value for required_version", "Write a string, such as \"~> 0.1\".")
	}
	constraints, err := goversion.NewConstraint(val.AsString())
	if err != nil {
		return diagnose.ErrorAt(x.Expr.Range(), "Invalid value for required_version", "Write version constraints, such as \"~> 0.1\" or \">= 0.2, < 1.0\".")
	}
	version, err := goversion.NewVersion(installed)
	if err != nil {
		return nil // a build without a version
	}
	if !constraints.Check(version.Core()) {
		return diagnose.ErrorAt(x.Expr.Range(), "Another version is required", fmt.Sprintf(
			"This configuration requires fray %s, this is %s. Install a version that fits, or change required_version.", val.AsString(), installed))
	}
	return nil
}
