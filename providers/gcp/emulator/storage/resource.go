package storage

import (
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strconv"
	"time"
)

// resource is a JSON object of the service.
type resource map[string]any

// text is how the service writes a time.
func text(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func checksum(crc32c uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32c))
}

func (v version) md5() string { return base64.StdEncoding.EncodeToString(v.MD5) }

// etag is one for every state of a version.
func (v version) etag() string {
	both := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(v.Generation)), uint64(v.Metageneration))
	return base64.StdEncoding.EncodeToString(both)
}

// resource is an object's metadata, by what is seen of its service at
// base, "http://127.0.0.1:4443".
func (v version) resource(base string) resource {
	generation := strconv.FormatInt(v.Generation, 10)
	path := "/b/" + url.PathEscape(v.Bucket) + "/o/" + url.PathEscape(v.Name)
	r := resource{
		"kind": "storage#object", "bucket": v.Bucket, "name": v.Name, "id": v.Bucket + "/" + v.Name + "/" + generation,
		"generation": generation, "metageneration": strconv.FormatInt(v.Metageneration, 10),
		"size": strconv.FormatInt(v.Size, 10), "md5Hash": v.md5(), "crc32c": checksum(v.CRC32C), "etag": v.etag(),
		"storageClass": "STANDARD", "timeCreated": text(v.Created), "updated": text(v.Updated),
		"timeStorageClassUpdated": text(v.Created), "selfLink": base + "/storage/v1" + path,
		"mediaLink": base + "/download/storage/v1" + path + "?generation=" + generation + "&alt=media",
	}
	for key, value := range map[string]string{
		"contentType": v.Content.Type, "contentEncoding": v.Content.Encoding, "contentLanguage": v.Content.Language,
		"contentDisposition": v.Content.Disposition, "cacheControl": v.Content.CacheControl, "kmsKeyName": v.KMSKey,
	} {
		if value != "" {
			r[key] = value
		}
	}
	if v.Components > 0 {
		r["componentCount"] = v.Components
		delete(r, "md5Hash")
	}
	if len(v.Metadata) > 0 {
		r["metadata"] = v.Metadata
	}
	if !v.live() {
		r["timeDeleted"] = text(v.Deleted)
	}
	return r
}

// resource is a bucket's metadata.
func (b Bucket) resource(base string) resource {
	kind := "region"
	switch b.Location {
	case "US", "EU", "ASIA":
		kind = "multi-region"
	}
	r := resource{
		"kind": "storage#bucket", "id": b.Name, "name": b.Name, "projectNumber": "1", "metageneration": "1",
		"location": b.Location, "locationType": kind, "storageClass": "STANDARD", "etag": "CAE=",
		"timeCreated": text(b.Created), "updated": text(b.Created), "selfLink": base + "/storage/v1/b/" + b.Name,
		"iamConfiguration": resource{
			"uniformBucketLevelAccess": resource{"enabled": true}, "publicAccessPrevention": "enforced",
		},
	}
	if b.Versioning {
		r["versioning"] = resource{"enabled": true}
	}
	if b.KMSKey != "" {
		r["encryption"] = resource{"defaultKmsKeyName": b.KMSKey}
	}
	return r
}
