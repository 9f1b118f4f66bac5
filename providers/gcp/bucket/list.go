package bucket

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/fray-ml/fray/state/store"
)

// pageSize is the most that the service returns at once.
const pageSize int64 = 1000

// List returns the attributes of every object whose key starts with one of
// prefixes, by key, with one request for about every thousand. What is under the
// bucket's prefix and has a name that is no key is left out: it is not the
// store's.
func (b *Bucket) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	found, err := b.divisions.list(ctx, prefixes, b.list)
	if err != nil {
		return nil, b.fail(opList, braced(prefixes), err)
	}
	return found, nil
}

var _ store.Foldered = (*Bucket)(nil)

// Folders returns what follows a prefix up to the next slash, with one request
// for every thousand.
func (b *Bucket) Folders(ctx context.Context, prefix string) ([]string, error) {
	names, err := b.folders(ctx, prefix)
	if err != nil {
		return nil, b.fail(opList, prefix, err)
	}
	return names, nil
}

func (b *Bucket) folders(ctx context.Context, prefix string) ([]string, error) {
	if err := store.CheckFolder(prefix); err != nil {
		return nil, err
	}
	prefix = b.cfg.Prefix + prefix
	var names []string
	for token := ""; ; {
		page, err := b.page(ctx, query{prefix: prefix, delimiter: "/"}, token, pageSize)
		if err != nil {
			return nil, err
		}
		for _, folder := range page.Prefixes {
			if name := strings.TrimSuffix(strings.TrimPrefix(folder, prefix), "/"); store.CheckKey(name) == nil {
				names = append(names, name)
			}
		}
		if token = page.NextPageToken; token == "" {
			slices.Sort(names)
			return names, nil
		}
	}
}

// braced names all prefixes as a shell would: "{assign/,hosts/}".
func braced(prefixes []string) string {
	if len(prefixes) == 1 {
		return prefixes[0]
	}
	return "{" + strings.Join(prefixes, ",") + "}"
}

// list goes through the keys from one up to, not with, another, of which "" is no bound. It goes from
// the first prefix to the last, since the service takes one prefix only, and leaves out those
// between.
func (b *Bucket) list(ctx context.Context, prefixes []string, from, to string) ([]store.Attrs, error) {
	var found []store.Attrs
	for token := ""; ; {
		page, err := b.page(ctx, b.span(prefixes, from, to), token, pageSize)
		if err != nil {
			return nil, err
		}
		for _, attrs := range page.Items {
			key := strings.TrimPrefix(attrs.Name, b.cfg.Prefix)
			if store.CheckKey(key) == nil && startsWithAny(key, prefixes) {
				is, err := attrsOf(key, attrs)
				if err != nil {
					return nil, err
				}
				found = append(found, is)
			}
		}
		if token = page.NextPageToken; token == "" {
			return found, nil
		}
		// Between two prefixes there may be any number of objects: of those,
		// only the rest of a page is ever fetched.
		last := strings.TrimPrefix(page.Items[len(page.Items)-1].Name, b.cfg.Prefix)
		if startsWithAny(last, prefixes) {
			continue
		}
		prefixes, token = slices.DeleteFunc(slices.Clone(prefixes), func(p string) bool { return p < last }), ""
		if len(prefixes) == 0 || to != "" && prefixes[0] >= to {
			return found, nil
		}
		from = prefixes[0]
	}
}

// attrsOf reads what a list states of an object.
func attrsOf(key string, object *storage.Object) (store.Attrs, error) {
	updated, err := time.Parse(time.RFC3339, object.Updated)
	if err != nil {
		return store.Attrs{}, fmt.Errorf("read when %s was written: %w", key, err)
	}
	return store.Attrs{Key: key, Generation: store.Generation(object.Generation), Size: int64(object.Size), Updated: updated}, nil
}

func startsWithAny(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// span asks for the names from the first of sorted prefixes to the last, of those from one key up to
// another.
func (b *Bucket) span(prefixes []string, from, to string) query {
	first, last := prefixes[0], prefixes[len(prefixes)-1]
	if first == last && from <= first && to == "" {
		return query{prefix: b.cfg.Prefix + first}
	}
	q := query{prefix: b.cfg.Prefix, start: b.cfg.Prefix + max(from, first), end: after(b.cfg.Prefix + last)}
	if to != "" {
		q.end = b.cfg.Prefix + to
	}
	return q
}

// after is the first name that follows all that begin with prefix; "" if there
// is none. Names go by their bytes, which in UTF-8 is by their characters.
func after(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		for last < utf8.MaxRune {
			if last++; utf8.ValidRune(last) {
				return prefix + string(last)
			}
		}
	}
	return ""
}

// query is what a list asks for.
type query struct {
	prefix, delimiter string
	start, end        string // names from start up to, not with, end; "": no bound
	versions          bool   // old ones too
}

// page is one answer to a list, of at most size objects. Only the last is of nothing.
func (b *Bucket) page(ctx context.Context, q query, token string, size int64) (page *storage.Objects, err error) {
	for {
		err = b.retry(ctx, func() error {
			page, err = b.request(ctx, q, token, size)
			return ofBucket(err)
		})
		if err != nil || len(page.Items)+len(page.Prefixes) > 0 || page.NextPageToken == "" {
			return page, err
		}
		token = page.NextPageToken
	}
}

func (b *Bucket) request(ctx context.Context, q query, token string, size int64) (*storage.Objects, error) {
	call := b.service.Objects.List(b.cfg.Bucket).Context(ctx).Projection("noAcl").MaxResults(size).Prefix(q.prefix)
	call.Fields("nextPageToken", "prefixes", googleapi.Field("items(name,generation,size,updated,timeCreated)"))
	for _, parameter := range []struct {
		value string
		set   func(string) *storage.ObjectsListCall
	}{{token, call.PageToken}, {q.delimiter, call.Delimiter}, {q.start, call.StartOffset}, {q.end, call.EndOffset}} {
		if parameter.value != "" {
			parameter.set(parameter.value)
		}
	}
	if q.versions {
		call.Versions(true)
	}
	return call.Do()
}
