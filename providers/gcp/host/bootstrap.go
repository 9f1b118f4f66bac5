package host

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/host/startup"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Bootstrap is what the hosts of a stack must know to become its hosts.
type Bootstrap struct {
	// Store is the location of the stack's store, "gs://BUCKET/PREFIX", with
	// options after '?' as agents get them.
	Store string
	// AgentSHA256 names the blob below [store.BundlesPrefix] that holds fray's
	// program for linux, as it is or compressed with gzip.
	AgentSHA256  string
	AgentVersion string // for people
	Workspace    string // "": the default one
}

// Metadata is the instance metadata that makes a machine a host of a slice.
func (b Bootstrap) Metadata(spec schema.SliceSpec) (map[string]string, error) {
	u, err := b.location()
	if err != nil {
		return nil, fmt.Errorf("bootstrap slice %s: %w", spec.Name, err)
	}
	values := map[string]string{
		mark.KeyStartupScript:   startup.Script,
		mark.KeyStore:           b.Store,
		mark.KeySlice:           spec.Name,
		mark.KeyAgentSum:        b.AgentSHA256,
		mark.KeyAgentObject:     "b/" + url.PathEscape(u.Host) + "/o/" + url.PathEscape(objectName(u, store.BundleKey(b.AgentSHA256))),
		mark.KeyBootUpload:      bootUpload(u, spec.Name),
		mark.KeyGuestAttributes: "TRUE",
	}
	for name, value := range map[string]string{mark.KeyWorkspace: b.Workspace, mark.KeyAgentVersion: b.AgentVersion} {
		if value != "" {
			values[name] = value
		}
	}
	return values, nil
}

// location is that of a store in a bucket.
func (b Bootstrap) location() (*url.URL, error) {
	u, err := url.Parse(b.Store)
	if err != nil || u.Scheme != "gs" || u.Host == "" {
		return nil, fmt.Errorf("hosts on Google Cloud cannot reach a state in %q; keep it in a bucket, with state \"gcs\"", b.Store)
	}
	if sum, err := hex.DecodeString(b.AgentSHA256); err != nil || len(sum) != 32 {
		return nil, errors.New("no program for the hosts was shipped to the store")
	}
	return u, nil
}

// objectName is the name of an object of the store in its bucket.
func objectName(at *url.URL, key string) string { return path.Join(strings.Trim(at.Path, "/"), key) }

// bootUpload is what uploads the status of a machine of a slice, once its number or name is
// appended.
func bootUpload(at *url.URL, slice string) string {
	query := "uploadType=media"
	if key := at.Query().Get("kms_key"); key != "" {
		query += "&kmsKeyName=" + url.QueryEscape(key)
	}
	return "b/" + url.PathEscape(at.Host) + "/o?" + query + "&name=" + url.QueryEscape(objectName(at, store.BootOf(slice))+"/")
}
