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
	object, err := b.object()
	if err != nil {
		return nil, fmt.Errorf("bootstrap slice %s: %w", spec.Name, err)
	}
	values := map[string]string{
		mark.KeyStartupScript:   startup.Script,
		mark.KeyStore:           b.Store,
		mark.KeySlice:           spec.Name,
		mark.KeyAgentSum:        b.AgentSHA256,
		mark.KeyAgentObject:     object,
		mark.KeyGuestAttributes: "TRUE",
	}
	for name, value := range map[string]string{mark.KeyWorkspace: b.Workspace, mark.KeyAgentVersion: b.AgentVersion} {
		if value != "" {
			values[name] = value
		}
	}
	return values, nil
}

// object is where the JSON API has the agent's program.
func (b Bootstrap) object() (string, error) {
	u, err := url.Parse(b.Store)
	if err != nil || u.Scheme != "gs" || u.Host == "" {
		return "", fmt.Errorf("hosts on Google Cloud cannot reach a state in %q; keep it in a bucket, with state \"gcs\"", b.Store)
	}
	if sum, err := hex.DecodeString(b.AgentSHA256); err != nil || len(sum) != 32 {
		return "", errors.New("no program for the hosts was shipped to the store")
	}
	name := path.Join(strings.Trim(u.Path, "/"), store.BundleKey(b.AgentSHA256))
	return "b/" + url.PathEscape(u.Host) + "/o/" + url.PathEscape(name), nil
}
