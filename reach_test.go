package fray_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"testing"
)

// TestPlanReachesNoNetwork: what decides is built without the network and without
// system calls of its own. (Package os comes with fmt.)
func TestPlanReachesNoNetwork(t *testing.T) {
	forbidden := []string{"net", "golang.org/x/sys"}
	// Functions of the language compute with network addresses and make UUIDs. Both go
	// from here once schema's functions are a package of their own.
	excused := []string{module + "/schema", "github.com/google/uuid"}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Standard", "./plan").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; seen++ {
		var listed struct {
			ImportPath string
			Imports    []string
			Standard   bool
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if listed.Standard || slices.Contains(excused, listed.ImportPath) {
			continue
		}
		if listed.ImportPath == module+"/state/store" {
			t.Errorf("plan is built from %s, which does I/O", listed.ImportPath)
		}
		for _, imported := range listed.Imports {
			if imported != "net/url" && imported != "net/netip" && slices.ContainsFunc(forbidden, func(f string) bool { return within(imported, f) }) {
				t.Errorf("plan is built from %s, which imports %s", listed.ImportPath, imported)
			}
		}
	}
	if seen < 50 {
		t.Errorf("go list knows only %d packages of plan: the rule is blind", seen)
	}
}
