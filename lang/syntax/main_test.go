package syntax

import (
	"testing"

	"github.com/fray-ml/fray/propertytest"
)

func TestMain(m *testing.M) { propertytest.Main(m) }
