package emulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// projectCalls are those of Service Usage and of Cloud Resource Manager by which
// a caller finds out what is wrong with a project before it makes anything.
func (s *compute) projectCalls() map[string]computeCall {
	const usage, manager = "serviceusage.googleapis.com", "cloudresourcemanager.googleapis.com"
	calls := map[string]computeCall{
		"GET /v1/projects/{project}/services/{name}": {
			method: "services.get", permission: "serviceusage.services.get", api: usage, do: s.getService,
		},
		"GET /v1/projects/{project}/services:batchGet": {
			method: "services.batchGet", permission: "serviceusage.services.get", api: usage, do: s.getServices,
		},
	}
	for _, version := range []string{"v1", "v3"} {
		root := "/" + version + "/projects/{project}"
		calls["GET "+root] = computeCall{
			method: "projects.get", permission: "resourcemanager.projects.get", api: manager, do: getProjectOf(version),
		}
		// The verb is part of the project's name to the router.
		calls["POST "+root] = computeCall{method: "projects.testIamPermissions", api: manager, do: s.testPermissions}
	}
	return calls
}

func (s *compute) service(r *computeRequest, api string) map[string]any {
	state := "ENABLED"
	if !s.cloud.Enabled(api) {
		state = "DISABLED"
	}
	return map[string]any{
		"name": "projects/" + r.project + "/services/" + api, "parent": "projects/" + r.project, "state": state,
		"config": map[string]any{"name": api},
	}
}

func (s *compute) getService(r *computeRequest) (any, error) { return s.service(r, r.name), nil }

func (s *compute) getServices(r *computeRequest) (any, error) {
	services := []any{}
	for _, name := range r.URL.Query()["names"] {
		services = append(services, s.service(r, lastPart(name)))
	}
	return map[string]any{"services": services}, nil
}

func getProjectOf(version string) func(*computeRequest) (any, error) {
	return func(r *computeRequest) (any, error) {
		if version == "v1" {
			return map[string]any{
				"projectId": r.project, "name": r.project, "projectNumber": "1", "lifecycleState": "ACTIVE",
			}, nil
		}
		return map[string]any{"name": "projects/1", "projectId": r.project, "displayName": r.project, "state": "ACTIVE"}, nil
	}
}

// testPermissions tells which of the asked permissions the caller has.
func (s *compute) testPermissions(r *computeRequest) (any, error) {
	if verb := r.PathValue("project"); !strings.HasSuffix(verb, ":testIamPermissions") {
		return nil, &computeError{status: http.StatusNotImplemented, reason: "notImplemented",
			message: "the emulator of Cloud Resource Manager does not know " + r.URL.Path}
	}
	var asked struct{ Permissions []string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, computeInvalid("Invalid JSON payload received: %v", err)
	}
	granted := slices.DeleteFunc(asked.Permissions, func(p string) bool { return !s.cloud.Permits(p) })
	return map[string]any{"permissions": granted}, nil
}
