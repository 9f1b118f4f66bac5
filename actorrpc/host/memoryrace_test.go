//go:build race

package host

// The race detector takes several times the memory of a program, so nothing is measured under it.
const envMeasured = "FRAY_TEST_MEASURED"

func measured() {}
