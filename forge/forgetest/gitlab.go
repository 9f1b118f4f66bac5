package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fray-ml/fray/forge"
)

// gitlab adds what fray calls of GitLab's REST API v4.
func (f *Forge) gitlab(mux *http.ServeMux) {
	project := "/api/v4/projects/" + Project
	on := func(pattern string, serve http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+project+path, func(w http.ResponseWriter, r *http.Request) { f.locked(func() { serve(w, r) }) })
	}
	mux.HandleFunc("GET /api/v4/user", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"id": 7, "username": f.login})
	})
	on("GET /merge_requests/{n}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := f.pulls[number(r, "n")]; ok {
			answer(w, http.StatusOK, gitlabPull(p))
			return
		}
		missing(w)
	})
	on("GET /repository/commits/{sha}/merge_requests", func(w http.ResponseWriter, r *http.Request) {
		found := []any{}
		for _, p := range f.pulls {
			if p.Head == r.PathValue("sha") || p.Merge == r.PathValue("sha") {
				found = append(found, gitlabPull(p))
			}
		}
		answer(w, http.StatusOK, found)
	})
	on("GET /merge_requests/{n}/diffs", func(w http.ResponseWriter, r *http.Request) {
		var found []any
		for _, file := range f.files[number(r, "n")] {
			found = append(found, map[string]any{"new_path": file.Path, "old_path": file.Path, "diff": file.Patch, "deleted_file": file.Status == "removed"})
		}
		gitlabList(f, w, r, found)
	})
	on("GET /merge_requests/{n}/approvals", func(w http.ResponseWriter, r *http.Request) {
		found := []any{}
		for _, review := range f.reviews[number(r, "n")] {
			if review.State == "APPROVED" {
				found = append(found, map[string]any{"user": map[string]any{"username": review.By}, "approved_at": "2026-11-26T10:00:00Z"})
			}
		}
		answer(w, http.StatusOK, map[string]any{"iid": number(r, "n"), "approved_by": found})
	})
	on("POST /statuses/{sha}", func(w http.ResponseWriter, r *http.Request) {
		v := body(r)
		s := forge.Status{Context: text(v, "name"), State: forge.State(text(v, "state")), Description: text(v, "description"), URL: text(v, "target_url")}
		f.statuses[r.PathValue("sha")] = append(f.statuses[r.PathValue("sha")], s)
		answer(w, http.StatusCreated, map[string]any{"status": s.State, "name": s.Context, "sha": r.PathValue("sha")})
	})
	f.gitlabNotes(on)
	f.gitlabIssues(on)
}

func (f *Forge) gitlabNotes(on func(string, http.HandlerFunc)) {
	on("GET /merge_requests/{n}/notes", func(w http.ResponseWriter, r *http.Request) {
		found := []any{map[string]any{"id": 1, "body": "added 1 commit", "system": true, "author": map[string]any{"username": f.login}}}
		for _, c := range f.comments[number(r, "n")] {
			found = append(found, gitlabNote(c))
		}
		gitlabList(f, w, r, found)
	})
	on("POST /merge_requests/{n}/notes", func(w http.ResponseWriter, r *http.Request) {
		n := number(r, "n")
		if _, ok := f.pulls[n]; !ok {
			missing(w)
			return
		}
		f.next++
		c := forge.Comment{ID: f.next, Author: f.login, Body: text(body(r), "body")}
		f.comments[n] = append(f.comments[n], c)
		answer(w, http.StatusCreated, gitlabNote(c))
	})
	on("PUT /merge_requests/{n}/notes/{id}", func(w http.ResponseWriter, r *http.Request) {
		pull, at := f.commentOf(int64(number(r, "id")))
		if at < 0 {
			missing(w)
			return
		}
		f.comments[pull][at].Body = text(body(r), "body")
		answer(w, http.StatusOK, gitlabNote(f.comments[pull][at]))
	})
	on("DELETE /merge_requests/{n}/notes/{id}", func(w http.ResponseWriter, r *http.Request) {
		pull, at := f.commentOf(int64(number(r, "id")))
		if at < 0 {
			missing(w)
			return
		}
		f.comments[pull] = slices.Delete(f.comments[pull], at, at+1)
		w.WriteHeader(http.StatusNoContent)
	})
}

func (f *Forge) gitlabIssues(on func(string, http.HandlerFunc)) {
	on("GET /issues", func(w http.ResponseWriter, r *http.Request) {
		var found []any
		for _, i := range f.issues {
			if !i.Closed && slices.Contains(i.Labels, r.URL.Query().Get("labels")) {
				found = append(found, gitlabIssue(i))
			}
		}
		gitlabList(f, w, r, found)
	})
	on("POST /issues", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusCreated, gitlabIssue(f.opened(body(r), "description")))
	})
	on("PUT /issues/{n}", func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(f.issues, func(i Issue) bool { return i.Number == number(r, "n") })
		if i < 0 {
			missing(w)
			return
		}
		v := body(r)
		f.edited(i, v, "description")
		f.issues[i].Closed = f.issues[i].Closed || text(v, "state_event") == "close"
		answer(w, http.StatusOK, gitlabIssue(f.issues[i]))
	})
}

func gitlabList(f *Forge, w http.ResponseWriter, r *http.Request, all []any) {
	items, next, _ := pageOf(f, r, all)
	if next != 0 {
		w.Header().Set("X-Next-Page", fmt.Sprint(next))
	}
	if items == nil {
		items = []any{}
	}
	answer(w, http.StatusOK, items)
}

func gitlabPull(p forge.Pull) map[string]any {
	v := map[string]any{"iid": p.Number, "sha": p.Head, "state": "opened", "source_project_id": 42, "target_project_id": 42, "merge_commit_sha": nil}
	if p.Fork {
		v["source_project_id"] = 43
	}
	if p.Merged {
		v["state"], v["merge_commit_sha"] = "merged", p.Merge
	}
	return v
}

func gitlabNote(c forge.Comment) map[string]any {
	return map[string]any{"id": c.ID, "body": c.Body, "system": false, "author": map[string]any{"username": c.Author}}
}

func gitlabIssue(i Issue) map[string]any {
	return map[string]any{"iid": i.Number, "title": i.Title, "description": i.Body, "author": map[string]any{"username": i.Author}}
}

func missing(w http.ResponseWriter) {
	answer(w, http.StatusNotFound, map[string]any{"message": "404 Not found"})
}
