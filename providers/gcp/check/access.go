package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// ofProject is where problems of the whole project point.
func ofProject() providers.Problem { return providers.Problem{Attribute: "project"} }

// access tries the two lists that every observation begins with, and
// reports whether both are answered.
func (c *checker) access(ctx context.Context) bool {
	var group sync.WaitGroup
	var errs [2]error
	group.Go(func() {
		if c.tpu != nil {
			_, errs[0] = c.tpu.ListNodes(ctx, &tpuapi.ListNodesRequest{Parent: "projects/" + c.config.Project + "/locations/-", PageSize: 1})
		}
	})
	group.Go(func() {
		var found struct{}
		errs[1] = c.rest.get(ctx, "compute", c.computePath("aggregated/instances?maxResults=1"), &found)
	})
	group.Wait()
	open := true
	for i, api := range []string{"tpu", "compute"} {
		if errs[i] != nil {
			open = !c.rejected(api, apierror.Interrupted(ctx, errs[i])) && open
		}
	}
	return open
}

func (c *checker) computePath(path string) string {
	return "compute/v1/projects/" + c.config.Project + "/" + path
}

// rejected reports what keeps an API from answering, if that does not pass by itself.
func (c *checker) rejected(api string, err error) bool {
	a, _ := apierror.AnswerOf(err)
	f := apierror.FindingOf(err)
	_, token := errors.AsType[*auth.Error](err)
	switch {
	case a.Has("SERVICE_DISABLED", "accessNotConfigured", "has not been used in project"):
		c.add(problemAt(ofProject(), "API is not enabled", fmt.Sprintf(
			"The API %s.googleapis.com is not enabled in project %s. Enable it with `gcloud services enable %[1]s.googleapis.com --project=%[2]s` and wait for some minutes.",
			api, c.config.Project)))
	case a.Has("BILLING_DISABLED", "billing"):
		c.add(problemAt(ofProject(), "No billing account", fmt.Sprintf(
			"Project %s has no billing account, and without one nothing can be made in it. Link one at https://console.cloud.google.com/billing/linkedaccount?project=%[1]s.", c.config.Project)))
	case a.Code == codes.Unauthenticated && f.Kind == schema.ErrorPermission, token && f.Kind == schema.ErrorPermission:
		c.credentials(err)
	case a.IsOfProject():
		c.add(problemAt(ofProject(), "No such project", fmt.Sprintf(
			"There is no project %q that these credentials may use: the service answers %q. `gcloud projects list` lists those that there are; write the id, not the name or the number.",
			c.config.Project, clipped(a.Message))))
	case f.Kind == schema.ErrorPermission:
		c.denied(a)
	default:
		c.passes(err)
		return false
	}
	return true
}

// credentials reports that there are none, or none that are good.
func (c *checker) credentials(err error) {
	c.mu.Lock()
	known := c.unauthenticated
	c.unauthenticated = true
	c.mu.Unlock()
	if known {
		return // the other API reports so too
	}
	c.add(problemAt(ofProject(), "No Google credentials", fmt.Sprintf(
		"Google Cloud does not know who asks: %s. To use an account of your own, run `gcloud auth application-default login`; for a service account, set GOOGLE_APPLICATION_CREDENTIALS to its key file, "+
			"or run fray on a machine of Google Cloud that has one.", strings.TrimSuffix(clipped(apierror.Brief(err).Error()), "."))))
}

// denied returns which right is missing.
func (c *checker) denied(a apierror.Answer) {
	permission := cmp.Or(a.Permission(), "the right to list what is there")
	c.lacks([]string{permission}, fmt.Sprintf(" The service answers %q; it answers the same if there is no project %s.", clipped(a.Message), c.config.Project))
}

// clipped is the beginning of a service's message.
func clipped(text string) string {
	const most = 240
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// lacks reports permissions that are missing on the project.
func (c *checker) lacks(missing []string, more string) {
	var roles []string
	for _, each := range missing {
		if role := apierror.RoleOf(each); !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	verb := "is"
	if len(missing) > 1 {
		verb = "are"
	}
	who := c.who()
	c.add(problemAt(ofProject(), "Permission is missing", fmt.Sprintf(
		"%s %s missing on project %s for %s. Have its owner grant %s: `gcloud projects add-iam-policy-binding %s --member=%s --role=%s`.%s",
		strings.Join(missing, ", "), verb, c.config.Project, who.text, strings.Join(roles, " and "), c.config.Project, who.member, roles[0], more)))
}

// needed are permissions that fray cannot do without, of the engines that the
// wishes are made by, as the lists of predefined roles name them.
func (c *checker) needed() []string {
	var needed []string
	engines := distinct(c.wishes, func(w *wish) []schema.Engine {
		var of []schema.Engine
		for _, zone := range w.zones {
			of = append(of, w.engineIn(zone))
		}
		return of
	})
	if slices.Contains(engines, schema.EngineTPU) {
		needed = append(needed, "tpu.nodes.create", "tpu.nodes.delete", "tpu.nodes.get", "tpu.nodes.list", "tpu.nodes.update")
	}
	if slices.Contains(engines, schema.EngineGCE) {
		needed = append(needed, "compute.instances.create", "compute.instances.delete", "compute.instances.get", "compute.instances.list",
			"compute.instances.setLabels", "compute.instances.setMetadata")
		if slices.ContainsFunc(c.wishes, func(w wish) bool { return w.spec.Hosts > 1 && !w.onlyOn(schema.EngineTPU) }) {
			needed = append(needed, "compute.instanceGroupManagers.create", "compute.instanceGroupManagers.delete",
				"compute.instanceTemplates.create", "compute.instanceTemplates.delete")
		}
	}
	return needed
}

// permissions asks which of the permissions that are needed these credentials
// have. Who may not ask that learns it later.
func (c *checker) permissions(ctx context.Context) {
	needed := c.needed()
	if len(needed) == 0 {
		return
	}
	var held struct {
		Permissions []string `json:"permissions"`
	}
	body := map[string][]string{"permissions": needed}
	err := c.rest.post(ctx, "cloudresourcemanager", "v1/projects/"+c.config.Project+":testIamPermissions", body, &held)
	if err != nil {
		return
	}
	missing := slices.DeleteFunc(needed, func(permission string) bool { return slices.Contains(held.Permissions, permission) })
	for _, service := range []string{"tpu.", "compute."} {
		of := slices.DeleteFunc(slices.Clone(missing), func(permission string) bool { return !strings.HasPrefix(permission, service) })
		if len(of) > 0 {
			c.lacks(of, "")
		}
	}
}
