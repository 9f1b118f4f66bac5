package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/fray-ml/fray/state/store"
)

// pageSize is the most that the service returns at once.
const pageSize = 1000

// List returns the attributes of every object whose key starts with one of
// prefixes, by key, with one request for every thousand. What is under the
// bucket's prefix and has a name that is no key is left out: it is not the
// store's.
func (b *Bucket) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	found, err := b.list(ctx, prefixes)
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
		page, next, err := b.page(ctx, storage.Query{Prefix: prefix, Delimiter: "/"}, token, pageSize)
		if err != nil {
			return nil, err
		}
		for _, attrs := range page {
			name := strings.TrimSuffix(strings.TrimPrefix(attrs.Prefix, prefix), "/")
			if attrs.Prefix != "" && store.CheckKey(name) == nil {
				names = append(names, name)
			}
		}
		if token = next; token == "" {
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

// list goes through the names from the first prefix to the last, since the
// service takes one prefix only, and leaves out those between.
func (b *Bucket) list(ctx context.Context, prefixes []string) ([]store.Attrs, error) {
	prefixes, err := store.DisjointPrefixes(prefixes)
	if err != nil {
		return nil, err
	}
	var found []store.Attrs
	token := ""
	for len(prefixes) > 0 {
		page, next, err := b.page(ctx, b.span(prefixes), token, pageSize)
		if err != nil {
			return nil, err
		}
		for _, attrs := range page {
			key := strings.TrimPrefix(attrs.Name, b.cfg.Prefix)
			if store.CheckKey(key) == nil && startsWithAny(key, prefixes) {
				found = append(found, attrsOf(key, attrs))
			}
		}
		if next == "" {
			break
		}
		token = next
		// Between two prefixes there may be any number of objects: of those,
		// only the rest of a page is ever fetched.
		last := strings.TrimPrefix(page[len(page)-1].Name, b.cfg.Prefix)
		if !startsWithAny(last, prefixes) {
			prefixes, token = slices.DeleteFunc(prefixes, func(p string) bool { return p < last }), ""
		}
	}
	return found, nil
}

func attrsOf(key string, attrs *storage.ObjectAttrs) store.Attrs {
	return store.Attrs{Key: key, Generation: store.Generation(attrs.Generation), Size: attrs.Size, Updated: attrs.Updated}
}

func startsWithAny(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// span asks for the names from the first of sorted prefixes to the last.
func (b *Bucket) span(prefixes []string) storage.Query {
	first, last := b.cfg.Prefix+prefixes[0], b.cfg.Prefix+prefixes[len(prefixes)-1]
	if first == last {
		return storage.Query{Prefix: first}
	}
	return storage.Query{Prefix: b.cfg.Prefix, StartOffset: first, EndOffset: after(last)}
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

// page is one answer to a list, of at most size objects.
func (b *Bucket) page(ctx context.Context, query storage.Query, token string, size int) (page []*storage.ObjectAttrs, next string, err error) {
	query.Projection = storage.ProjectionNoACL
	fields := []string{"Name", "Generation", "Size", "Updated"}
	if query.Versions {
		fields = append(fields, "Created")
	}
	if err := query.SetAttrSelection(fields); err != nil {
		return nil, "", fmt.Errorf("select fields: %w", err)
	}
	err = b.retry(ctx, func() error {
		page, next, err = answerOf(b.bucket.Objects(ctx, &query), token, size)
		return err
	})
	return page, next, err
}

func answerOf(objects *storage.ObjectIterator, token string, size int) (page []*storage.ObjectAttrs, next string, err error) {
	info := objects.PageInfo()
	info.Token, info.MaxSize = token, size
	for len(page) == 0 || info.Remaining() > 0 {
		attrs, err := objects.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		page = append(page, attrs)
	}
	return page, info.Token, nil
}
