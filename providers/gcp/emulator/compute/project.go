package compute

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// projects serves what Service Usage and Cloud Resource Manager state of a project.
type projects struct{ cloud *cloud.Cloud }

// endpoints are those of Service Usage, Cloud Resource Manager and Cloud Quotas by
// which a caller finds out what is wrong with a project before it makes anything.
func (s *projects) endpoints() map[string]endpoint {
	const usage, manager = "serviceusage.googleapis.com", "cloudresourcemanager.googleapis.com"
	found := map[string]endpoint{
		"GET /v1/projects/{project}/services/{name}": {
			method: "services.get", permission: "serviceusage.services.get", api: usage, do: s.getService,
		},
		"GET /v1/projects/{project}/services:batchGet": {
			method: "services.batchGet", permission: "serviceusage.services.get", api: usage, do: s.getServices,
		},
	}
	found["GET /v1/projects/{project}/serviceAccounts/{name}"] = endpoint{
		method: "serviceAccounts.get", permission: "iam.serviceAccounts.get", api: "iam.googleapis.com", do: getServiceAccount,
	}
	found["GET /v1/projects/{project}/locations/global/services/{service}/quotaInfos/{name}"] = endpoint{
		method: "quotaInfos.get", permission: "cloudquotas.quotas.get", api: "cloudquotas.googleapis.com", do: s.getQuotaInfo,
	}
	for _, version := range []string{"v1", "v3"} {
		root := "/" + version + "/projects/{project}"
		found["GET "+root] = endpoint{
			method: "projects.get", permission: "resourcemanager.projects.get", api: manager, do: getProjectOf(version),
		}
		// The verb is part of the project's name to the router.
		found["POST "+root] = endpoint{method: "projects.testIamPermissions", api: manager, do: s.testPermissions}
	}
	return found
}

func (s *projects) service(r *request, api string) map[string]any {
	state := "ENABLED"
	if !s.cloud.Enabled(api) {
		state = "DISABLED"
	}
	return map[string]any{
		"name": "projects/" + r.project + "/services/" + api, "parent": "projects/" + r.project, "state": state,
		"config": map[string]any{"name": api},
	}
}

func (s *projects) getService(r *request) (any, error) { return s.service(r, r.name), nil }

func (s *projects) getServices(r *request) (any, error) {
	services := []any{}
	for _, name := range r.URL.Query()["names"] {
		services = append(services, s.service(r, lastPart(name)))
	}
	return map[string]any{"services": services}, nil
}

// getServiceAccount shows an account; each that can exist does. The project "-" is that
// of the account.
func getServiceAccount(r *request) (any, error) {
	account := regexp.MustCompile(`^[a-z][a-z0-9-]{4,28}[a-z0-9]@([a-z][a-z0-9-]*)\.iam\.gserviceaccount\.com$|^\d+-compute@developer\.gserviceaccount\.com$`).FindStringSubmatch(r.name)
	if account == nil {
		return nil, &apiError{status: http.StatusNotFound, reason: "notFound", message: "Unknown service account"}
	}
	project := cmp.Or(account[1], r.project)
	return map[string]any{
		"name": "projects/" + project + "/serviceAccounts/" + r.name, "projectId": project, "email": r.name,
		"uniqueId": "1", "displayName": r.name,
	}, nil
}

func getProjectOf(version string) func(*request) (any, error) {
	return func(r *request) (any, error) {
		if version == "v1" {
			return map[string]any{
				"projectId": r.project, "name": r.project, "projectNumber": "1", "lifecycleState": "ACTIVE",
			}, nil
		}
		return map[string]any{"name": "projects/1", "projectId": r.project, "displayName": r.project, "state": "ACTIVE"}, nil
	}
}

// testPermissions returns which of the asked permissions the caller has.
func (s *projects) testPermissions(r *request) (any, error) {
	if strings.HasSuffix(r.PathValue("project"), ":getEffectiveOrgPolicy") {
		return s.orgPolicy(r)
	}
	if verb := r.PathValue("project"); !strings.HasSuffix(verb, ":testIamPermissions") {
		return nil, &apiError{status: http.StatusNotImplemented, reason: "notImplemented",
			message: "the emulator of Cloud Resource Manager does not know " + r.URL.Path}
	}
	var asked struct{ Permissions []string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, invalid("Invalid JSON payload received: %v", err)
	}
	granted := slices.DeleteFunc(asked.Permissions, func(p string) bool { return !s.cloud.Permits(p) })
	return map[string]any{"permissions": granted}, nil
}
