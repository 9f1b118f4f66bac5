package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

// objectDraft are a request's attributes of an object to be made.
type objectDraft struct {
	Name               string
	ContentType        string
	ContentEncoding    string
	ContentLanguage    string
	ContentDisposition string
	CacheControl       string
	Metadata           map[string]string
	CRC32C             string `json:"crc32c"`
	MD5Hash            string
}

func (s *Server) upload(r *http.Request, at address) (answer, error) {
	kind := r.URL.Query().Get("uploadType")
	switch {
	case r.URL.Query().Has("upload_id"):
		return s.serveSession(r, at)
	case r.Method == http.MethodPost && kind == "multipart":
		return s.uploadParts(r, at)
	case r.Method == http.MethodPost && kind == "resumable":
		return s.begin(r, at)
	case r.Method == http.MethodPost && kind == "media":
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return answer{}, invalid("The body did not arrive: %v", err)
		}
		return s.create(r, at, objectDraft{ContentType: r.Header.Get("Content-Type")}, data)
	}
	return answer{}, unknown(r)
}

// uploadParts reads an upload that has all in one request.
func (s *Server) uploadParts(r *http.Request, at address) (answer, error) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return answer{}, invalid("Malformed multipart body: %v", err)
	}
	parts := multipart.NewReader(r.Body, parameters["boundary"])
	var draft objectDraft
	described, err := parts.NextRawPart()
	if err == nil {
		err = json.NewDecoder(described).Decode(&draft)
	}
	if err != nil {
		return answer{}, invalid("Malformed multipart body: %v", err)
	}
	media, err := parts.NextRawPart()
	if err != nil {
		return answer{}, invalid("Malformed multipart body: %v", err)
	}
	data, err := io.ReadAll(media)
	if err == nil {
		_, err = parts.NextRawPart() // an upload that breaks off is none
	}
	if !errors.Is(err, io.EOF) {
		return answer{}, invalid("Malformed multipart body: %v", err)
	}
	if draft.ContentType == "" {
		draft.ContentType = media.Header.Get("Content-Type")
	}
	return s.create(r, at, draft, data)
}

// create makes an object of what has arrived.
func (s *Server) create(r *http.Request, at address, draft objectDraft, data []byte) (answer, error) {
	when, err := conditionsOf(r)
	if err != nil {
		return answer{}, err
	}
	v, err := draft.version(r, at)
	if err == nil {
		err = draft.verify(data, r.Header.Values("X-Goog-Hash"))
	}
	if err == nil {
		v, err = s.insert(v, data, when)
	}
	return answer{resource: v.resource(baseOf(r))}, err
}

// maxName is the longest name of an object, in bytes.
const maxName = 1024

func (d objectDraft) version(r *http.Request, at address) (version, error) {
	if named := r.URL.Query().Get("name"); named != "" {
		d.Name = named
	}
	v := version{
		Bucket: at.bucket, Name: d.Name, KMSKey: r.URL.Query().Get("kmsKeyName"), Metadata: d.Metadata,
		Content: content{
			Type: d.ContentType, Encoding: d.ContentEncoding, Language: d.ContentLanguage,
			Disposition: d.ContentDisposition, CacheControl: d.CacheControl,
		},
	}
	switch {
	case d.Name == "":
		return v, &problem{http.StatusBadRequest, "required", "InvalidArgument", "Required"}
	case len(d.Name) > maxName || d.Name == "." || d.Name == ".." || strings.ContainsAny(d.Name, "\r\n"):
		return v, invalid("Disallowed unicode characters or length of object name: %.40q", d.Name)
	}
	return v, nil
}

// verify holds data against the checksums that came with it, in its description
// or as headers "crc32c=…".
func (d objectDraft) verify(data []byte, hashes []string) error {
	is := version{}.sum(data)
	for _, stated := range hashes {
		for one := range strings.SplitSeq(stated, ",") {
			if sum, ok := strings.CutPrefix(strings.TrimSpace(one), "crc32c="); ok {
				d.CRC32C = sum
			}
		}
	}
	if got := checksum(is.CRC32C); d.CRC32C != "" && d.CRC32C != got {
		return mismatch("CRC32C", d.CRC32C, got)
	}
	if got := is.md5(); d.MD5Hash != "" && d.MD5Hash != got {
		return mismatch("MD5 hash", d.MD5Hash, got)
	}
	return nil
}

func mismatch(kind, stated, got string) error {
	return invalid("%s", fmt.Sprintf("Provided %s %q doesn't match calculated %[1]s %q.", kind, stated, got))
}
