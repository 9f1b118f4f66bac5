package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/forge"
)

// github adds what fray calls of GitHub's REST API, version 2022-11-28.
func (f *Forge) github(mux *http.ServeMux) {
	repo := "/repos/" + Owner + "/" + Name
	on := func(pattern string, serve http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+repo+path, func(w http.ResponseWriter, r *http.Request) { f.locked(func() { serve(w, r) }) })
	}
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, _ *http.Request) {
		if f.unnamed {
			answer(w, http.StatusForbidden, map[string]any{"message": "Resource not accessible by integration", "documentation_url": "https://docs.github.com/rest/users/users#get-the-authenticated-user", "status": "403"})
			return
		}
		answer(w, http.StatusOK, user(f.login))
	})
	on("GET /pulls/{n}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := f.pulls[number(r, "n")]; ok {
			answer(w, http.StatusOK, githubPull(p))
			return
		}
		notFound(w)
	})
	on("GET /commits/{sha}/pulls", func(w http.ResponseWriter, r *http.Request) {
		found := []any{}
		for _, p := range f.pulls {
			if p.Head == r.PathValue("sha") || p.Merge == r.PathValue("sha") {
				found = append(found, githubPull(p))
			}
		}
		githubList(f, w, r, found)
	})
	on("GET /pulls/{n}/files", func(w http.ResponseWriter, r *http.Request) {
		var found []any
		for _, file := range f.files[number(r, "n")] {
			found = append(found, map[string]any{"sha": "bbcd538c8e72b8c175046e27cc8f907076331401", "filename": file.Path, "status": file.Status, "patch": file.Patch})
		}
		githubList(f, w, r, found)
	})
	on("GET /pulls/{n}/reviews", func(w http.ResponseWriter, r *http.Request) {
		var found []any
		for _, review := range f.reviews[number(r, "n")] {
			found = append(found, map[string]any{"user": user(review.By), "state": review.State, "commit_id": review.Commit})
		}
		githubList(f, w, r, found)
	})
	on("POST /statuses/{sha}", func(w http.ResponseWriter, r *http.Request) {
		v := body(r)
		s := forge.Status{Context: text(v, "context"), State: forge.State(text(v, "state")), Description: text(v, "description"), URL: text(v, "target_url")}
		if utf8.RuneCountInString(s.Description) > 140 {
			invalid(w, "Status", "description", "description is too long (maximum is 140 characters)")
			return
		}
		f.statuses[r.PathValue("sha")] = append(f.statuses[r.PathValue("sha")], s)
		answer(w, http.StatusCreated, v)
	})
	f.githubComments(on)
	f.githubIssues(on)
}

func (f *Forge) githubComments(on func(string, http.HandlerFunc)) {
	on("GET /issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		var found []any
		for _, c := range f.comments[number(r, "n")] {
			found = append(found, githubComment(c))
		}
		githubList(f, w, r, found)
	})
	on("POST /issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		n, content := number(r, "n"), text(body(r), "body")
		switch _, ok := f.pulls[n]; {
		case !ok:
			notFound(w)
		case tooLong(content):
			invalid(w, "IssueComment", "data", "Body is too long (maximum is 65536 characters)")
		default:
			f.next++
			c := forge.Comment{ID: f.next, Author: f.login, Body: content}
			f.comments[n] = append(f.comments[n], c)
			answer(w, http.StatusCreated, githubComment(c))
		}
	})
	on("PATCH /issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		content := text(body(r), "body")
		switch pull, at := f.commentOf(int64(number(r, "id"))); {
		case at < 0:
			notFound(w)
		case tooLong(content):
			invalid(w, "IssueComment", "data", "Body is too long (maximum is 65536 characters)")
		default:
			f.comments[pull][at].Body = content
			answer(w, http.StatusOK, githubComment(f.comments[pull][at]))
		}
	})
	on("DELETE /issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		pull, at := f.commentOf(int64(number(r, "id")))
		if at < 0 {
			notFound(w)
			return
		}
		f.comments[pull] = slices.Delete(f.comments[pull], at, at+1)
		w.WriteHeader(http.StatusNoContent)
	})
}

func (f *Forge) githubIssues(on func(string, http.HandlerFunc)) {
	on("GET /issues", func(w http.ResponseWriter, r *http.Request) {
		var found []any
		for _, i := range f.issues {
			if !i.Closed && slices.Contains(i.Labels, r.URL.Query().Get("labels")) {
				found = append(found, githubIssue(i))
			}
		}
		githubList(f, w, r, found)
	})
	on("POST /issues", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusCreated, githubIssue(f.opened(body(r), "body")))
	})
	on("PATCH /issues/{n}", func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(f.issues, func(i Issue) bool { return i.Number == number(r, "n") })
		if i < 0 {
			notFound(w)
			return
		}
		v := body(r)
		f.edited(i, v, "body")
		f.issues[i].Closed = f.issues[i].Closed || text(v, "state") == "closed"
		answer(w, http.StatusOK, githubIssue(f.issues[i]))
	})
}

// opened adds an issue.
func (f *Forge) opened(v map[string]any, content string) Issue {
	f.next++
	i := Issue{Issue: forge.Issue{Number: int(f.next), Author: f.login, Title: text(v, "title"), Body: text(v, content)}}
	switch labels := v["labels"].(type) {
	case string:
		i.Labels = strings.Split(labels, ",")
	case []any:
		for _, label := range labels {
			i.Labels = append(i.Labels, fmt.Sprint(label))
		}
	}
	f.issues = append(f.issues, i)
	return i
}

// edited replaces what a request has.
func (f *Forge) edited(i int, v map[string]any, content string) {
	if _, ok := v["title"]; ok {
		f.issues[i].Title = text(v, "title")
	}
	if _, ok := v[content]; ok {
		f.issues[i].Body = text(v, content)
	}
}

func githubList(f *Forge, w http.ResponseWriter, r *http.Request, all []any) {
	items, next, last := pageOf(f, r, all)
	if next != 0 {
		w.Header().Set("Link", link(r, next, "next")+", "+link(r, last, "last"))
	}
	if items == nil {
		items = []any{}
	}
	answer(w, http.StatusOK, items)
}

func user(login string) map[string]any {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return map[string]any{"login": login, "id": 1, "type": kind}
}

func githubPull(p forge.Pull) map[string]any {
	base := map[string]any{"full_name": Owner + "/" + Name}
	head := any(base)
	if p.Fork {
		head = map[string]any{"full_name": "mallory/" + Name, "fork": true}
	}
	v := map[string]any{
		"number": p.Number, "state": "open", "merged": p.Merged, "merged_at": nil, "merge_commit_sha": p.Merge,
		"head": map[string]any{"ref": "topic", "sha": p.Head, "repo": head}, "base": map[string]any{"ref": "main", "repo": base},
	}
	if p.Merged {
		v["state"], v["merged_at"] = "closed", "2026-11-26T10:00:00Z"
	}
	return v
}

func githubComment(c forge.Comment) map[string]any {
	return map[string]any{"id": c.ID, "body": c.Body, "user": user(c.Author), "author_association": "NONE"}
}

func githubIssue(i Issue) map[string]any {
	state := "open"
	if i.Closed {
		state = "closed"
	}
	return map[string]any{"number": i.Number, "title": i.Title, "body": i.Body, "state": state, "user": user(i.Author), "html_url": fmt.Sprintf("https://github.com/%s/%s/issues/%d", Owner, Name, i.Number)}
}

func tooLong(content string) bool { return utf8.RuneCountInString(content) > 65_536 }

func notFound(w http.ResponseWriter) {
	answer(w, http.StatusNotFound, map[string]any{"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"})
}

func invalid(w http.ResponseWriter, resource, field, message string) {
	answer(w, http.StatusUnprocessableEntity, map[string]any{
		"message": "Validation Failed", "documentation_url": "https://docs.github.com/rest",
		"errors": []any{map[string]any{"resource": resource, "code": "unprocessable", "field": field, "message": message}},
	})
}
