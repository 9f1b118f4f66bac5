package storage

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// kind is a closed set of what a request is about.
type kind int

const (
	kindUnknown kind = iota
	kindBuckets
	kindBucket
	kindPermissions // the caller's, on a bucket
	kindObjects
	kindObject
	kindUpload
	kindCompose
	kindCopy
	kindRewrite        // a copy, as the service makes large ones
	kindServiceAccount // the service's own, of a project
)

// address is what a request is about.
type address struct {
	kind       kind
	bucket     string
	object     string
	generation int64 // 0: the live one
	media      bool  // the bytes rather than the metadata
	dialect    dialect
	to         objectName // of a copy
}

type objectName struct{ bucket, object string }

// parse reads a request's path. Names may hold slashes, which come escaped but
// in the last form.
//
//	/storage/v1/b[/BUCKET[/o[/OBJECT]]]
//	/storage/v1/b/BUCKET/iam/testPermissions
//	/storage/v1/b/BUCKET/o/OBJECT/compose
//	/storage/v1/b/BUCKET/o/OBJECT/{copyTo,rewriteTo}/b/BUCKET/o/OBJECT
//	/storage/v1/projects/PROJECT/serviceAccount
//	/download/storage/v1/b/BUCKET/o/OBJECT
//	/upload/storage/v1/b/BUCKET/o
//	/BUCKET/OBJECT
func parse(r *http.Request) (address, error) {
	escaped := r.URL.EscapedPath()
	var at address
	var err error
	if at.generation, err = number(r.URL.Query().Get("generation")); err != nil {
		return at, invalid("Invalid generation: %v", err)
	}
	if rest, ok := strings.CutPrefix(escaped, "/upload/storage/v1/b/"); ok {
		bucket, rest, _ := strings.Cut(rest, "/")
		if rest != "o" {
			return at, nil
		}
		at.kind = kindUpload
		return at.named(bucket, "")
	}
	rest, download := strings.CutPrefix(escaped, "/download/storage/v1/b/")
	at.media = download || r.URL.Query().Get("alt") == "media"
	if at.media {
		at.dialect = dialectMedia
	}
	if download {
		return at.resource(rest)
	}
	if rest, ok := strings.CutPrefix(escaped, "/storage/v1/b"); ok {
		return at.resource(strings.TrimPrefix(rest, "/"))
	}
	if rest, ok := strings.CutPrefix(escaped, "/storage/v1/projects/"); ok {
		if strings.HasSuffix(rest, "/serviceAccount") {
			at.kind = kindServiceAccount
		}
		return at, nil
	}
	at.media, at.dialect = true, dialectXML
	bucket, object, ok := strings.Cut(strings.TrimPrefix(escaped, "/"), "/")
	if !ok || object == "" {
		return at, nil
	}
	at.kind = kindObject
	return at.named(bucket, object)
}

// resource reads what follows /b/.
func (at address) resource(rest string) (address, error) {
	bucket, rest, _ := strings.Cut(rest, "/")
	object := strings.TrimPrefix(rest, "o/")
	switch {
	case bucket == "":
		at.kind = kindBuckets
	case rest == "":
		at.kind = kindBucket
	case rest == "iam/testPermissions":
		at.kind = kindPermissions
	case rest == "o":
		at.kind = kindObjects
	case object != rest && object != "":
		name, verb, _ := strings.Cut(object, "/")
		if err := at.act(verb); err != nil {
			return at, err
		}
		return at.named(bucket, name)
	}
	return at.named(bucket, "")
}

// act reads what follows an object.
func (at *address) act(verb string) error {
	switch verb {
	case "":
		at.kind = kindObject
		return nil
	case "compose":
		at.kind = kindCompose
		return nil
	}
	verb, to, _ := strings.Cut(verb, "/b/")
	bucket, object, ok := strings.Cut(to, "/o/")
	switch {
	case ok && verb == "copyTo":
		at.kind = kindCopy
	case ok && verb == "rewriteTo":
		at.kind = kindRewrite
	default:
		return nil
	}
	named, err := address{}.named(bucket, object)
	at.to = objectName{named.bucket, named.object}
	return err
}

func (at address) named(bucket, object string) (address, error) {
	var err error
	if at.bucket, err = url.PathUnescape(bucket); err != nil {
		return at, invalid("Invalid bucket name: %v", err)
	}
	if at.object, err = url.PathUnescape(object); err != nil {
		return at, invalid("Invalid object name: %v", err)
	}
	return at, nil
}

// number reads a whole number; "" is 0.
func number(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseInt(s, 10, 64)
}

// conditionsOf reads a request's preconditions: parameters of the JSON API,
// headers of the XML API.
func conditionsOf(r *http.Request) (conditions, error) {
	var c conditions
	for _, p := range []struct {
		parameter, header string
		into              **int64
	}{
		{"ifGenerationMatch", "X-Goog-If-Generation-Match", &c.generation},
		{"ifGenerationNotMatch", "X-Goog-If-Generation-Not-Match", &c.notGeneration},
		{"ifMetagenerationMatch", "X-Goog-If-Metageneration-Match", &c.metageneration},
		{"ifMetagenerationNotMatch", "X-Goog-If-Metageneration-Not-Match", &c.notMetageneration},
	} {
		stated := cmp.Or(r.URL.Query().Get(p.parameter), r.Header.Get(p.header))
		if stated == "" {
			continue
		}
		n, err := strconv.ParseInt(stated, 10, 64)
		if err != nil {
			return c, invalid("Invalid value for %s: %q", p.parameter, stated)
		}
		*p.into = &n
	}
	return c, nil
}
