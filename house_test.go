// Package fray_test holds the house rules that no compiler checks: which
// package may import which, and what a pure package must not touch. Start with
// house.
package fray_test

import (
	"fmt"
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

// house is the import direction: schema <- state <- plan <- apply <- controller
// <- stack <- configuration <- proposal <- rollout <- cmd/fray. Providers and the
// agent stand beside it and know little.
func house() []room {
	return []room{
		{name: "propertytest"},
		{name: "durable"},
		{name: "filelock"},
		{name: "schema"},
		{name: "accelerators", sees: []string{"schema"}},
		{name: "lang/diagnose", sees: []string{"schema"}},
		{name: "lang/mark", sees: []string{"schema"}},
		{name: "lang/show", sees: []string{"lang/mark"}},
		{name: "lang/files"},
		{name: "lang/syntax", sees: []string{"lang/diagnose"}},
		{name: "lang/as", sees: []string{"schema", "lang/diagnose"}},
		{name: "lang/load", sees: []string{"schema", "lang/diagnose", "lang/files", "lang/syntax", "lang/as"}},
		{name: "lang/language", sees: []string{"schema", "lang/diagnose"}},
		{name: "lang/funcs", sees: []string{"accelerators", "lang/diagnose", "lang/mark", "lang/files", "lang/syntax"}},
		{name: "lang/format", sees: []string{"lang/diagnose", "lang/files", "lang/syntax"}},
		{name: "lang/configs", sees: []string{"schema", "lang/diagnose", "lang/as", "lang/load", "lang/language"}},
		{name: "lang/eval", sees: []string{
			"schema", "accelerators", "lang/diagnose", "lang/mark", "lang/syntax", "lang/as", "lang/load", "lang/language",
			"lang/funcs", "lang/configs",
		}},
		{name: "lang/decode", sees: []string{
			"schema", "accelerators", "lang/diagnose", "lang/mark", "lang/files", "lang/as", "lang/language", "lang/configs",
			"lang/eval",
		}},
		{name: "lang/lint", sees: []string{"schema", "accelerators", "lang/diagnose", "lang/as", "lang/language", "lang/configs", "lang/eval"}},
		{name: "lang/request", sees: []string{
			"schema", "accelerators", "lang/diagnose", "lang/as", "lang/load", "lang/language", "lang/configs", "lang/eval",
			"lang/decode",
		}},
		{name: "lang/testfile", sees: []string{
			"schema", "lang/diagnose", "lang/show", "lang/files", "lang/as", "lang/load", "lang/language", "lang/funcs",
			"lang/configs", "lang/eval",
		}},
		{name: "lang", sees: []string{
			"schema", "lang/diagnose", "lang/mark", "lang/files", "lang/load", "lang/language", "lang/funcs", "lang/configs",
			"lang/eval", "lang/decode", "lang/lint",
		}},
		{name: "lang/outline", sees: []string{"schema", "lang/language", "lang/configs", "lang/syntax"}},
		{name: "lang/query", sees: []string{
			"schema", "accelerators", "lang/load", "lang/language", "lang/funcs", "lang/configs", "lang/testfile", "lang/outline", "lang",
		}, pure: true},
		{name: "lang/recorded", sees: []string{"schema", "lang/files", "lang/load", "lang/funcs", "lang/eval", "lang"}},
		{name: "state", sees: []string{"schema"}, pure: true},
		{name: "sleep"},
		{name: "state/logtime"},
		{name: "state/store", sees: []string{"durable", "filelock", "state", "state/logtime", "sleep"}},
		{name: "state/keyring", sees: []string{"state"}},
		{name: "plan", sees: []string{"schema", "accelerators", "state"}, pure: true},
		{name: "plan/change", sees: []string{"schema", "accelerators", "state", "plan"}, pure: true},
		{name: "plan/snapshot", sees: []string{"schema", "accelerators", "state", "plan", "plan/change"}, pure: true},
		{name: "plan/capacity", sees: []string{"schema", "accelerators", "state", "plan", "plan/change", "plan/snapshot"}, pure: true},
		{name: "plan/launch", sees: []string{"schema", "state", "plan"}, pure: true},
		{name: "plan/lifecycle", sees: []string{"schema", "state", "plan", "plan/change", "plan/snapshot", "plan/capacity", "plan/launch"}, pure: true},
		{name: "plan/render", sees: []string{"schema", "accelerators", "plan", "plan/change", "plan/lifecycle"}, pure: true},
		{name: "plan/depgraph", sees: []string{"schema", "plan"}, pure: true},
		{name: "plan/amend", sees: []string{"schema", "state", "plan", "plan/change", "plan/snapshot", "plan/lifecycle"}, pure: true},
		{name: "providers", sees: []string{"schema"}},
		{name: "providers/providertest", sees: []string{"schema", "providers"}},
		{name: "providers/local", sees: []string{"durable", "filelock", "schema", "providers"}},
		{name: "clusterapi"},
		{name: "actorrpc", sees: []string{"sleep", "clusterapi"}},
		{name: "providers/gcp/apierror", sees: []string{"schema", "providers"}},
		{name: "providers/gcp/client", sees: []string{"sleep", "providers/gcp/apierror"}},
		{name: "providers/gcp/machinetype", sees: []string{"schema", "accelerators"}},
		{name: "providers/gcp/mark", sees: []string{"schema", "accelerators", "providers/gcp/apierror"}},
		{name: "providers/gcp/tpuapi"},
		{name: "providers/gcp/check", sees: []string{
			"schema", "accelerators", "providers", "providers/gcp/apierror", "providers/gcp/client", "providers/gcp/machinetype",
			"providers/gcp/mark", "providers/gcp/tpuapi",
		}},
		{name: "providers/gcp/engine", sees: []string{"schema", "providers/gcp/apierror", "providers/gcp/client", "providers/gcp/mark"}},
		{name: "providers/gcp/gce", sees: []string{
			"schema", "accelerators", "providers/gcp/apierror", "providers/gcp/machinetype", "providers/gcp/mark", "providers/gcp/engine",
		}},
		{name: "providers/gcp/tpu", sees: []string{"schema", "accelerators", "providers/gcp/apierror", "providers/gcp/mark", "providers/gcp/tpuapi", "providers/gcp/engine"}},
		{name: "providers/gcp", sees: []string{
			"schema", "accelerators", "providers", "actorrpc", "providers/gcp/apierror", "providers/gcp/mark", "providers/gcp/tpuapi",
			"providers/gcp/check", "providers/gcp/engine", "providers/gcp/gce", "providers/gcp/tpu",
		}},
		{name: "clusterapi/token", pure: true},
		{name: "clusterapi/identity", pure: true},
		{name: "clusterapi/keys", sees: []string{"state", "state/store", "clusterapi/token", "clusterapi/identity"}},
		{name: "clusterapi/dial", sees: []string{"state/store", "clusterapi/token"}},
		{name: "examples", sees: []string{"actorrpc"}},
		{name: "agent/bundle", sees: []string{"durable", "schema", "state/store"}},
		{name: "agent/mask", sees: []string{"schema"}},
		{name: "agent/process"},
		{name: "agent/record", sees: []string{"durable"}},
		{name: "agent/tree", sees: []string{"agent/process", "agent/record"}},
		{name: "agent/command", sees: []string{"schema", "agent/process"}},
		{name: "agent/hostdir", sees: []string{"filelock", "schema", "state", "clusterapi/keys", "agent/process", "agent/record"}},
		{name: "agent/ports", sees: []string{"schema"}},
		{name: "agent/notice", sees: []string{"sleep"}},
		{name: "agent/mailbox", sees: []string{"state", "sleep", "state/store"}},
		{name: "agent/identities", sees: []string{"durable", "sleep", "state/store", "clusterapi/identity", "clusterapi/keys"}},
		{name: "agent/proxy", sees: []string{"clusterapi", "clusterapi/dial"}},
		{name: "agent/logs", sees: []string{"state/logtime", "state/store", "clusterapi"}},
		{name: "agent/environment", sees: []string{"schema", "accelerators", "state", "agent/process"}},
		{name: "agent/health", sees: []string{"schema", "state", "sleep", "agent/process", "agent/command"}},
		{name: "agent/outcome", sees: []string{"schema", "agent/command", "agent/hostdir"}},
		{name: "agent/execution", sees: []string{"clusterapi", "agent/process"}},
		{name: "agent/usage", sees: []string{"state", "agent/process"}},
		{name: "agent/shim", sees: []string{"schema", "state/logtime", "agent/mask", "agent/process", "agent/record", "agent/hostdir"}},
		{name: "agent/artifact", sees: []string{"durable", "state/store", "agent/bundle", "agent/tree", "agent/hostdir"}},
		{name: "agent/container", sees: []string{"schema", "sleep", "agent/process", "agent/command", "agent/hostdir", "agent/outcome"}},
		{name: "agent/uv", sees: []string{
			"schema", "agent/process", "agent/record", "agent/tree", "agent/command", "agent/hostdir", "agent/outcome",
		}},
		{name: "agent/task", sees: []string{
			"filelock", "schema", "state", "sleep", "state/logtime", "state/store", "clusterapi", "clusterapi/token", "agent/mask", "agent/process",
			"agent/record", "agent/command", "agent/hostdir", "agent/ports", "agent/identities", "agent/logs", "agent/environment",
			"agent/health", "agent/outcome", "agent/execution", "agent/usage", "agent/shim", "agent/artifact", "agent/container", "agent/uv",
		}},
		{name: "agent/hostapi", sees: []string{
			"state/store", "clusterapi", "clusterapi/token", "clusterapi/keys", "clusterapi/dial", "agent/process", "agent/hostdir",
			"agent/ports", "agent/proxy", "agent/logs", "agent/execution", "agent/usage", "agent/task",
		}},
		{name: "agent", sees: []string{
			"filelock", "schema", "state", "sleep", "state/store", "agent/record", "agent/hostdir", "agent/ports", "agent/notice",
			"agent/mailbox", "agent/identities", "agent/uv", "agent/usage", "agent/task", "agent/hostapi",
		}},
		{name: "modules", sees: []string{"durable", "schema", "lang/load", "lang", "state/store"}},
		{name: "plan/schedule", sees: []string{"schema", "state", "plan", "plan/change", "plan/snapshot", "plan/capacity", "plan/lifecycle"}, pure: true},
		{name: "plan/reconcile", sees: []string{
			"schema", "state", "plan", "plan/change", "plan/snapshot", "plan/capacity", "plan/launch", "plan/lifecycle",
			"plan/schedule",
		}, pure: true},
		{name: "plan/incremental", sees: []string{
			"schema", "state", "plan", "plan/change", "plan/snapshot", "plan/capacity", "plan/launch", "plan/lifecycle",
			"plan/schedule", "plan/reconcile",
		}, pure: true},
		{name: "apply", sees: []string{"schema", "lang/eval", "lang", "state", "state/store", "plan/...", "providers"}},
		{name: "providers/gcp/emulator/cloud", sees: []string{"schema"}},
		{name: "providers/gcp/emulator/listfault", sees: []string{"providers/gcp/emulator/cloud"}},
		{name: "providers/gcp/emulator/compute", sees: []string{"providers/gcp/emulator/cloud", "providers/gcp/emulator/listfault"}},
		{name: "providers/gcp/emulator/tpu/stable", sees: []string{"providers/gcp/tpuapi"}},
		{name: "providers/gcp/emulator/tpu", sees: []string{
			"accelerators", "providers/gcp/tpuapi", "providers/gcp/emulator/cloud", "providers/gcp/emulator/listfault",
			"providers/gcp/emulator/tpu/stable",
		}},
		{name: "providers/gcp/emulator", sees: []string{
			"durable", "filelock", "schema", "agent/process", "providers/gcp/emulator/cloud", "providers/gcp/emulator/compute",
			"providers/gcp/emulator/tpu",
		}},
		{name: "rehearse", sees: []string{
			"schema", "accelerators", "state", "state/store", "plan", "providers", "providers/gcp", "apply", "providers/gcp/emulator/...",
		}},
		{name: "rehearse/history", sees: []string{"schema", "accelerators", "state"}},
		{name: "controller/caller"},
		{name: "controller/badrequest", sees: []string{"schema", "lang/request"}},
		{name: "controller/access", sees: []string{"schema", "state", "state/store", "plan"}},
		{name: "controller/access/accesstest", sees: []string{"schema", "state", "state/store", "plan/...", "plan", "controller/access"}},
		{name: "controller/jobs", sees: []string{"schema", "lang/request", "state", "controller/caller", "controller/badrequest"}},
		{name: "controller/registry", sees: []string{"schema", "state/store", "clusterapi"}},
		{name: "controller/actors", sees: []string{"schema", "state", "state/store", "controller/registry"}},
		{name: "controller/pause", sees: []string{"state"}},
		{name: "controller/describe", sees: []string{
			"schema", "state", "plan", "plan/capacity", "clusterapi", "controller/access", "controller/jobs", "controller/pause",
		}},
		{name: "controller/joblogs", sees: []string{
			"lang/request", "state", "state/store", "clusterapi", "controller/badrequest", "controller/access", "controller/jobs",
			"controller/describe",
		}},
		{name: "controller/admission", sees: []string{
			"schema", "accelerators", "lang/request", "state", "plan/launch", "clusterapi", "controller/caller",
			"controller/badrequest", "controller/jobs", "controller/actors",
		}},
		{name: "controller/metadata", sees: []string{
			"schema", "state", "sleep", "state/store", "clusterapi", "controller/caller", "controller/badrequest",
			"controller/access", "controller/jobs", "controller/registry",
		}},
		{name: "controller/sessions", sees: []string{"schema", "state", "sleep", "plan/launch", "controller/access"}},
		{name: "controller/cluster", sees: []string{
			"schema", "lang/request", "state", "state/store", "plan/launch", "clusterapi", "controller/caller",
			"controller/badrequest", "controller/access", "controller/jobs", "controller/describe", "controller/joblogs",
			"controller/admission", "controller/sessions",
		}},
		{name: "controller/admin", sees: []string{
			"schema", "state", "state/store", "plan", "plan/amend", "plan/reconcile", "clusterapi", "apply", "controller/caller",
			"controller/access", "controller/pause",
		}},
		{name: "controller/apiserver", sees: []string{
			"state", "clusterapi", "clusterapi/token", "clusterapi/keys", "clusterapi/dial", "controller/caller",
			"controller/access", "controller/jobs",
		}},
		{name: "controller/usage", sees: []string{"schema", "state", "plan"}},
		{name: "controller/web", sees: []string{
			"schema", "accelerators", "state", "state/logtime", "state/store", "plan/...", "controller/access", "controller/actors", "controller/usage",
		}},
		{name: "controller/telemetry", sees: []string{
			"schema", "state", "state/store", "plan", "plan/capacity", "providers", "apply", "controller/web",
		}},
		{name: "controller/loop", sees: []string{
			"schema", "state", "state/store", "plan", "plan/reconcile", "providers", "clusterapi/keys", "apply", "controller/access",
		}},
		{name: "controller", sees: []string{
			"schema", "state", "sleep", "state/store", "plan", "providers", "clusterapi/token", "clusterapi/keys",
			"clusterapi/dial", "apply", "controller/access", "controller/joblogs", "controller/metadata", "controller/sessions", "controller/cluster",
			"controller/admin", "controller/apiserver", "controller/actors", "controller/web", "controller/telemetry", "controller/loop",
		}},
		{name: "release", sees: []string{"durable", "state/store"}},
		{name: "providers/gcp/bucket", sees: []string{"sleep", "state/store", "providers/gcp/apierror", "providers/gcp/client"}},
		{name: "providers/gcp/host", sees: []string{"schema", "state", "state/store", "providers/gcp/mark"}},
		{name: "providers/gcp/kms", sees: []string{"providers/gcp/apierror", "providers/gcp/client"}},
		{name: "terminal", sees: []string{"lang/diagnose", "lang"}},
		{name: "stack", sees: []string{
			"durable", "schema", "state", "state/store", "state/keyring", "plan/amend", "providers", "providers/local",
			"providers/gcp", "clusterapi/keys", "clusterapi/dial", "apply", "release", "providers/gcp/bucket", "providers/gcp/host",
			"providers/gcp/kms", "terminal",
		}},
		{name: "configuration", sees: []string{
			"schema", "accelerators", "lang/...", "state", "state/store", "plan/...", "providers", "agent/bundle", "modules", "apply",
			"release", "terminal", "stack",
		}},
		{name: "lsp/workspace", sees: []string{"lang/files", "lang/load", "lang/outline", "lang", "modules", "configuration"}},
		{name: "lsp", sees: []string{"lang/diagnose", "lang/load", "lang/format", "lang/outline", "lang/query", "lang", "lsp/workspace"}},
		{name: "console", sees: []string{"lang/show", "lang/eval", "terminal", "stack", "configuration"}},
		{name: "events", sees: []string{"schema", "state", "state/store", "terminal"}},
		{name: "progress", sees: []string{"schema", "state", "plan", "plan/change", "controller/pause", "terminal"}},
		{name: "status", sees: []string{
			"schema", "accelerators", "state", "state/store", "plan/...", "providers/gcp/client", "clusterapi/dial", "apply",
			"controller/pause", "terminal", "stack", "configuration", "events", "progress",
		}},
		{name: "session", sees: []string{"schema", "state", "state/store", "clusterapi", "clusterapi/dial", "terminal", "stack", "configuration", "status"}},
		{name: "follow", sees: []string{
			"schema", "state", "sleep", "state/logtime", "state/store", "clusterapi", "clusterapi/keys", "clusterapi/dial", "terminal", "stack", "configuration",
			"status", "session", "controller/actors",
		}},
		{name: "hostagent", sees: []string{"schema", "state", "state/store", "state/keyring", "agent/notice", "agent", "release", "providers/gcp/host", "terminal", "stack"}},
		{name: "migration", sees: []string{"schema", "state", "sleep", "state/store", "clusterapi/keys", "agent/bundle", "apply", "terminal", "stack"}},
		{name: "proposal", sees: []string{
			"schema", "state", "plan/...", "providers", "providers/gcp", "agent/bundle", "apply", "release", "terminal", "stack",
			"configuration",
		}},
		{name: "rehearse/report", sees: []string{"accelerators", "rehearse", "terminal", "progress"}},
		{name: "savedplan", sees: []string{
			"durable", "schema", "lang/eval", "lang", "state", "state/store", "state/keyring", "plan", "plan/render", "release",
			"terminal", "stack", "configuration", "proposal",
		}},
		{name: "rollout", sees: []string{
			"schema", "state", "state/store", "plan/...", "providers", "clusterapi", "clusterapi/keys", "apply", "controller/admin", "controller/pause",
			"release", "terminal", "stack", "configuration", "progress", "proposal", "savedplan",
		}},
		{name: "runclient", sees: []string{
			"durable", "schema", "actorrpc", "clusterapi/token", "clusterapi/keys", "agent/proxy", "controller/actors", "terminal", "configuration",
		}},
		{name: "surgery", sees: []string{
			"schema", "state", "state/store", "state/keyring", "plan/amend", "clusterapi/keys", "apply", "terminal", "stack",
			"configuration",
		}},
		{name: "testruns", sees: []string{
			"filelock", "schema", "lang/...", "state", "sleep", "state/store", "plan", "plan/capacity", "providers/local", "release",
			"terminal", "stack", "configuration", "progress", "proposal", "rollout",
		}},
		{name: "watch", sees: []string{
			"schema", "state", "sleep", "state/store", "plan", "apply", "controller", "controller/loop", "release", "terminal", "stack", "configuration",
			"progress", "proposal", "rollout",
		}},
		{name: "commandline", sees: []string{"schema"}},
		{name: "cmd/fray", sees: []string{
			"commandline",
			"durable", "schema", "lang/...", "state", "state/store", "plan/...", "actorrpc", "providers/gcp/client",
			"agent/bundle", "agent/shim", "agent", "modules", "apply", "providers/gcp/emulator/...", "rehearse", "rehearse/history", "controller/pause", "release", "terminal", "stack", "configuration",
			"console", "lsp", "events", "status", "session", "follow", "hostagent", "migration", "proposal", "rehearse/report",
			"savedplan", "rollout", "runclient", "surgery", "testruns", "watch",
		}},
		{name: "bench", sees: []string{
			"schema", "lang/eval", "lang", "state", "sleep", "state/store", "plan/...", "providers", "clusterapi", "actorrpc",
			"providers/gcp", "clusterapi/keys", "clusterapi/dial", "modules", "apply", "providers/gcp/emulator/...", "clusterapi/token", "controller", "controller/access", "controller/apiserver", "controller/metadata",
			"providers/gcp/bucket",
		}},
		{name: "providers/gcp/client/clienttest", sees: []string{"providers/gcp/client"}},
		{name: "providers/gcp/bucket/buckettest", sees: []string{"providers/gcp/client/clienttest"}},
	}
}

func owners() []owner {
	return []owner{
		{library: "github.com/spf13/cobra", rooms: []string{"cmd/fray", "commandline"}},
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
	for _, v := range violations(house(), owners(), sources) {
		t.Error(v)
	}
}

// violations names every breach as "plan imports os (plan/x.go): reason".
func violations(rooms []room, owners []owner, sources []source) []string {
	var found []string
	for _, s := range sources {
		home, ok := roomOf(rooms, s.path)
		if !ok {
			found = append(found, s.path+" has no room in the house: move it into one, or give house() another")
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
			[]string{"shed has no room in the house: move it into one, or give house() another"}},
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
