package compute

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/listfault"
)

// listItem is one resource on its way into a list.
type listItem struct {
	scope   string // "zones/us-west4-a"
	name    string
	message any             // a pointer to a resource, or an object
	encoded json.RawMessage // of message; nil: not yet
}

func (i listItem) json() (json.RawMessage, error) {
	if i.encoded != nil {
		return i.encoded, nil
	}
	return json.Marshal(i.message)
}

// listPage is one page of a list.
type listPage struct {
	items []listItem
	next  string
	// unreachable are zones that the whole list leaves out.
	unreachable []string
}

// listCursor states where a list goes on, and what it leaves out up to its end.
type listCursor struct {
	Scope, Name string
	Unreachable []string
}

func (c listCursor) token() string {
	encoded, _ := json.Marshal(c) // strings always encode
	return base64.URLEncoding.EncodeToString(encoded)
}

func parseListCursor(token string) (listCursor, error) {
	var c listCursor
	decoded, err := base64.URLEncoding.DecodeString(token)
	if err == nil && token != "" {
		err = json.Unmarshal(decoded, &c)
	}
	if err != nil {
		return c, invalid("Invalid value for field 'pageToken': '%s'.", token)
	}
	return c, nil
}

// lists cuts lists into pages and injects the faults of the scenario.
type lists struct {
	cloud  *cloud.Cloud
	faults map[string]*listfault.Injector[listItem] // by the collection's name
}

func newLists(c *cloud.Cloud) *lists {
	s := &lists{cloud: c, faults: map[string]*listfault.Injector[listItem]{}}
	for _, of := range []string{"instances", "instanceGroupManagers", "instanceTemplates"} {
		s.faults[of] = &listfault.Injector[listItem]{
			Of: of, Cloud: c, Zone: func(i listItem) string { return strings.TrimPrefix(i.scope, "zones/") }, Copied: copiedItem,
		}
	}
	return s
}

func copiedItem(i listItem) listItem {
	copied := listItem{scope: i.scope, name: listfault.CopyName(i.name), message: copyOf(i.message)}
	setText(copied.message, "name", copied.name)
	return copied
}

// paged cuts the page out of items that the request asks for.
func (s *lists) paged(r *request, items []listItem, unreachable func() []string) (listPage, error) {
	query := r.URL.Query()
	size := min(500, s.cloud.PageSize())
	if most := query.Get("maxResults"); most != "" {
		n, err := strconv.Atoi(most)
		if err != nil || n < 0 || n > 500 {
			return listPage{}, invalid("Invalid value for field 'maxResults': '%s'. Must be between 0 and 500.", most)
		}
		if n > 0 {
			size = min(size, n)
		}
	}
	matches, err := parseListFilter(query.Get("filter"))
	if err != nil {
		return listPage{}, err
	}
	at, err := parseListCursor(query.Get("pageToken"))
	if err != nil {
		return listPage{}, err
	}
	if query.Get("pageToken") == "" {
		at.Unreachable = unreachable()
	}
	slices.SortFunc(items, func(a, b listItem) int { return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.name, b.name)) })
	page := listPage{unreachable: at.Unreachable}
	for _, item := range items {
		if cmp.Or(cmp.Compare(item.scope, at.Scope), cmp.Compare(item.name, at.Name)) <= 0 ||
			slices.Contains(at.Unreachable, strings.TrimPrefix(item.scope, "zones/")) || !matches.of(item.message) {
			continue
		}
		if len(page.items) == size {
			last := page.items[size-1]
			page.next = listCursor{last.scope, last.name, at.Unreachable}.token()
			break
		}
		page.items = append(page.items, item)
	}
	of := path.Base(r.URL.Path)
	if faults := s.faults[of]; faults != nil {
		page.items, page.next = faults.Page(page.items, page.next, query.Get("pageToken") == "")
	}
	return page, nil
}

// listed is a page of a list of one scope.
func (s *lists) listed(r *request, kind string, items []listItem) (any, error) {
	page, err := s.paged(r, items, func() []string { return nil })
	if err != nil {
		return nil, err
	}
	body := map[string]any{"kind": kind, "id": r.resource(), "selfLink": linkRoot + r.resource()}
	if page.next != "" {
		body["nextPageToken"] = page.next
	}
	encoded, err := encodedItems(page.items)
	if len(encoded) > 0 {
		body["items"] = encoded
	}
	return body, err
}

func encodedItems(items []listItem) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for _, item := range items {
		one, err := item.json()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// aggregated is a page of a list over all scopes. What cannot be reached is a
// warning in its scope, or the error of the whole for a caller that does not
// take partial success; the library cannot state that.
func (s *lists) aggregated(r *request, collection string, items []listItem) (any, error) {
	page, err := s.paged(r, items, s.cloud.Unreachable)
	if err != nil {
		return nil, err
	}
	if len(page.unreachable) > 0 && r.URL.Query().Get("returnPartialSuccess") == "false" {
		return nil, &apiError{status: http.StatusServiceUnavailable, reason: "backendError",
			message: "The following scopes could not be reached: zones/" + strings.Join(page.unreachable, ", zones/")}
	}
	byScope := map[string][]listItem{}
	for _, item := range page.items {
		byScope[item.scope] = append(byScope[item.scope], item)
	}
	scopes := map[string]any{}
	for _, zone := range s.cloud.Zones() {
		scope := "zones/" + zone
		scopes[scope] = scopeWarning("NO_RESULTS_ON_PAGE", "There are no results for scope '"+scope+"' on this page.", scope)
	}
	for scope, items := range byScope {
		encoded, err := encodedItems(items)
		if err != nil {
			return nil, err
		}
		scopes[scope] = map[string]any{collection: encoded}
	}
	var unreachables []string
	for _, zone := range page.unreachable {
		scope := "zones/" + zone
		unreachables = append(unreachables, scope)
		scopes[scope] = scopeWarning("UNREACHABLE", "The scope '"+scope+"' could not be reached.", scope)
	}
	body := map[string]any{
		"kind": "compute#aggregatedList", "id": "projects/" + r.project + "/aggregated/" + collection, "items": scopes,
		"selfLink": linkRoot + "projects/" + r.project + "/aggregated/" + collection,
	}
	if page.next != "" {
		body["nextPageToken"] = page.next
	}
	if len(unreachables) > 0 {
		body["unreachables"] = unreachables
	}
	return body, nil
}

func scopeWarning(code, message, scope string) any {
	return map[string]any{"warning": map[string]any{
		"code": code, "message": message, "data": []any{map[string]string{"key": "scope", "value": scope}},
	}}
}
