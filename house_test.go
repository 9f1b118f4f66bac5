// Package fray_test holds the house rules that no compiler checks: which
// package may import which, and what a pure package must not touch. Start with
// house.
package fray_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fray-ml/fray"

// room is a package with the packages below it that are no rooms of their own.
// Within a room everything may import everything.
type room struct {
	name string   // path within the module
	sees []string // the rooms it may import from
	pure bool     // computes only: no clock, no I/O, no logs, no randomness
}

// mayImport reports whether a room may import from another. An entry "plan/..." stands for
// plan and all rooms below it.
func (r room) mayImport(name string) bool {
	return slices.ContainsFunc(r.sees, func(seen string) bool {
		above, all := strings.CutSuffix(seen, "/...")
		return name == above || all && strings.HasPrefix(name, above+"/")
	})
}

// owner has the rooms that may use a foreign library. Others may reach the
// library through one of those, and in no other way.
type owner struct {
	library string // import path, with everything below it
	rooms   []string
}

// house is the import direction, from testdata/house.txt.
func house(t *testing.T) []room {
	t.Helper()
	text, err := os.ReadFile("testdata/house.txt")
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := readHouse(string(text))
	if err != nil {
		t.Fatalf("testdata/house.txt: %v", err)
	}
	return rooms
}

// readHouse reads lines "name (pure): rooms that it sees".
func readHouse(text string) ([]room, error) {
	var rooms []room
	for line := range strings.Lines(strings.ReplaceAll(text, "\n\t", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, sees, ok := strings.Cut(line, ":")
		name, pure := strings.CutSuffix(name, " (pure)")
		if !ok || name == "" || strings.ContainsAny(name, " ()") {
			return nil, fmt.Errorf("%q: want a room, a colon, and the rooms that it sees", line)
		}
		if slices.ContainsFunc(rooms, func(r room) bool { return r.name == name }) {
			return nil, fmt.Errorf("%s has two lines", name)
		}
		rooms = append(rooms, room{name: name, sees: strings.Fields(sees), pure: pure})
	}
	return rooms, nil
}

func owners() []owner {
	return []owner{
		{library: "github.com/spf13/cobra", rooms: []string{"cmd/fray", "cmd/fray/register", "cmd/fray/stateverbs", "commandline"}},
		{library: "cloud.google.com/go", rooms: []string{"providers/gcp"}},
		{library: "github.com/google/renameio", rooms: []string{"durable", "providers/gcp/bucket/buckettest"}}, // whose fake-gcs-server uses it
		{library: "github.com/creachadair/jrpc2", rooms: []string{"lsp"}},
		{library: "filippo.io/age", rooms: []string{"state/keyring"}},
		{library: "charm.land", rooms: []string{"status"}},
		{library: "github.com/prometheus/client_golang", rooms: []string{"controller/telemetry", "actorrpc"}},
		{library: "go.opentelemetry.io/otel/exporters/otlp", rooms: []string{"controller/telemetry"}},
	}
}

func TestHouse(t *testing.T) {
	sources, err := readModule(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"schema", "state", "state/store", "plan", "providers"} {
		if !slices.ContainsFunc(sources, func(s source) bool { return s.path == want }) {
			t.Errorf("go list knows no package %s; the rules would hold for want of anything to break them", want)
		}
	}
	for _, v := range violations(house(t), owners(), sources) {
		t.Error(v)
	}
}

// violations names every breach as "plan imports os (plan/x.go): reason".
func violations(rooms []room, owners []owner, sources []source) []string {
	var found []string
	for _, s := range sources {
		home, ok := roomOf(rooms, s.path)
		if !ok {
			found = append(found, s.path+" has no room in the house: move it into one, or give testdata/house.txt another")
			continue
		}
		for _, f := range s.files {
			for _, imported := range f.imports {
				if reason := objection(rooms, home, imported); reason != "" {
					found = append(found, fmt.Sprintf("%s imports %s (%s): %s", s.path, short(imported), f.name, reason))
				}
			}
			if home.pure {
				for _, use := range f.clock {
					found = append(found, fmt.Sprintf("%s uses %s (%s): it is pure; take now as an argument", s.path, use, f.name))
				}
			}
		}
		for _, o := range owners {
			found = append(found, trespasses(o, s)...)
		}
	}
	return found
}

// objection says why a room must not import something, or "".
func objection(rooms []room, home room, imported string) string {
	if home.pure && impure(imported) {
		return "it is pure: no clock, no I/O, no logs, no randomness"
	}
	inner, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return ""
	}
	if strings.HasSuffix(inner, "test") && !strings.HasSuffix(home.name, "test") {
		return "it is a suite for tests"
	}
	target, ok := roomOf(rooms, inner)
	if !ok || target.name == home.name || home.mayImport(target.name) {
		return "" // a package without a room is reported once, for itself
	}
	if len(home.sees) == 0 {
		return "it sees none of our packages"
	}
	return "it sees " + strings.Join(home.sees, ", ") + " only"
}

func impure(imported string) bool {
	forbidden := []string{"os", "net", "log", "syscall", "io/fs", "math/rand", "crypto/rand", "golang.org/x/sys"}
	return imported != "net/url" && slices.ContainsFunc(forbidden, func(p string) bool { return within(imported, p) })
}

// trespasses names a package's direct imports of another package's library and,
// if there are none, the library that came in without its owner.
func trespasses(o owner, s source) []string {
	if slices.ContainsFunc(o.rooms, func(room string) bool { return within(s.path, room) }) {
		return nil
	}
	only := strings.Join(o.rooms, " and ")
	var found []string
	for _, f := range s.files {
		for _, imported := range f.imports {
			if within(imported, o.library) {
				found = append(found, fmt.Sprintf("%s imports %s (%s): only %s may", s.path, imported, f.name, only))
			}
		}
	}
	throughOwner := func(dep string) bool {
		return slices.ContainsFunc(o.rooms, func(room string) bool { return within(dep, module+"/"+room) })
	}
	if found != nil || slices.ContainsFunc(s.reaches, throughOwner) {
		return found
	}
	for _, dep := range s.reaches {
		if within(dep, o.library) {
			return []string{fmt.Sprintf("%s reaches %s through another package: only %s may", s.path, dep, only)}
		}
	}
	return nil
}

// roomOf finds the innermost room of a path within the module.
func roomOf(rooms []room, p string) (room, bool) {
	best, ok := room{}, false
	for _, r := range rooms {
		if within(p, r.name) && len(r.name) >= len(best.name) {
			best, ok = r, true
		}
	}
	return best, ok
}

func within(p, top string) bool { return p == top || strings.HasPrefix(p, top+"/") }

func short(imported string) string { return strings.TrimPrefix(imported, module+"/") }

func TestReadHouse(t *testing.T) {
	got, err := readHouse("# a comment\n\nlow:\nhigh (pure): low a/...\n\tb\n")
	want := []room{{name: "low", sees: []string{}}, {name: "high", sees: []string{"low", "a/...", "b"}, pure: true}}
	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, wrong := range []string{"low", ": low", "low (impure): a", "low\nhigh: a", "low:\nlow: a"} {
		if got, err := readHouse(wrong); err == nil {
			t.Errorf("%q is read as %v", wrong, got)
		}
	}
}

func TestViolations(t *testing.T) {
	rooms := []room{
		{name: "low"},
		{name: "pure", sees: []string{"low"}, pure: true},
		{name: "high", sees: []string{"low", "pure"}},
		{name: "high/inner", sees: []string{"low"}},
	}
	cloud := []owner{
		{library: "example.com/cloud", rooms: []string{"high"}},
		{library: "example.com/shared", rooms: []string{"high", "pure"}},
	}
	one := func(path string, imports ...string) source {
		return source{path: path, files: []file{{name: path + "/x.go", imports: imports}}}
	}
	tests := []struct {
		name   string
		source source
		want   []string
	}{
		{"downwards", one("high", module+"/low", module+"/pure", "os"), nil},
		{"upwards", one("low", module+"/high"),
			[]string{"low imports high (low/x.go): it sees none of our packages"}},
		{"past what it sees", one("pure", module+"/high"),
			[]string{"pure imports high (pure/x.go): it sees low only"}},
		{"within a room", one("high/other", module+"/high", module+"/high/other/deep"), nil},
		{"into a room's inner room", one("high", module+"/high/inner"),
			[]string{"high imports high/inner (high/x.go): it sees low, pure only"}},
		{"a package below a pure room is pure", one("pure/deep", "strings", "net/http"),
			[]string{"pure/deep imports net/http (pure/deep/x.go): it is pure: no clock, no I/O, no logs, no randomness"}},
		{"a name that only begins alike", one("pure", "osmosis", "logic/x", "network"), nil},
		{"clock in a pure room", source{path: "pure", files: []file{{name: "pure/x.go", clock: []string{"time.Now"}}}},
			[]string{"pure uses time.Now (pure/x.go): it is pure; take now as an argument"}},
		{"clock elsewhere", source{path: "high", files: []file{{name: "high/x.go", clock: []string{"time.Now"}}}}, nil},
		{"a conformance suite", one("high", module+"/low/lowtest"),
			[]string{"high imports low/lowtest (high/x.go): it is a suite for tests"}},
		{"no room", one("shed", "os"),
			[]string{"shed has no room in the house: move it into one, or give testdata/house.txt another"}},
		{"the owner's library", one("high", "example.com/cloud/storage"), nil},
		{"another package's library", one("low", "example.com/cloud/storage"),
			[]string{"low imports example.com/cloud/storage (low/x.go): only high may"}},
		{"a library of two", one("pure", "example.com/shared"), nil},
		{"another package's library of two", one("low", "example.com/shared"),
			[]string{"low imports example.com/shared (low/x.go): only high and pure may"}},
		{"a library through one of its owners",
			source{path: "low", reaches: []string{"example.com/shared", module + "/pure"}}, nil},
		{"a library through its owner",
			source{path: "low", reaches: []string{"example.com/cloud/storage", module + "/high"}}, nil},
		{"a library behind its owner's back",
			source{path: "low", reaches: []string{"example.com/cloud/storage", "example.com/helper"}},
			[]string{"low reaches example.com/cloud/storage through another package: only high may"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := violations(rooms, cloud, []source{test.source}); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
