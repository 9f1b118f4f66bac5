package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Host is what a machine of Google Cloud knows of itself as a host of a slice.
type Host struct {
	Instance  string // the machine's id, another one whenever it is made anew
	Name      string // the machine's
	Zone      string
	Address   string // of its first network interface, inside the network
	Store     string // location of the stack's store
	Workspace string // "": the default one
	Spec      schema.SliceSpec
	// Number is that of the host in its slice; -1: machines of a group have
	// none, and claim one. See ClaimHost.
	Number int
}

// Read asks the metadata server of this machine.
func Read(ctx context.Context) (Host, error) {
	h, err := readHost(ctx, newMetadataServer())
	if err != nil {
		return Host{}, fmt.Errorf("find out which host this is: %w", err)
	}
	return h, nil
}

func readHost(ctx context.Context, server metadataServer) (Host, error) {
	h := Host{Number: -1}
	var spec, zone string
	for _, each := range []struct {
		path     string
		to       *string
		optional bool
	}{
		{path: "instance/id", to: &h.Instance},
		{path: "instance/name", to: &h.Name},
		{path: "instance/zone", to: &zone},
		{path: "instance/network-interfaces/0/ip", to: &h.Address},
		{path: attributePath(mark.KeyStore), to: &h.Store},
		{path: attributePath(mark.KeySpec), to: &spec},
		{path: attributePath(mark.KeyWorkspace), to: &h.Workspace, optional: true},
	} {
		e, err := server.get(ctx, each.path)
		if each.optional && errors.Is(err, errNotDefined) {
			err = nil
		}
		if err != nil {
			return h, err
		}
		*each.to = e.value
	}
	h.Zone = zone[strings.LastIndexByte(zone, '/')+1:] // "projects/1/zones/us-west4-a"
	if err := json.Unmarshal([]byte(spec), &h.Spec); err != nil {
		return h, fmt.Errorf("its metadata %s is no slice: %w", mark.KeySpec, err)
	}
	if err := h.checkMachine(ctx, server); err != nil {
		return h, err
	}
	var err error
	h.Number, err = readNumber(ctx, server, h.Spec)
	return h, err
}

// IsOfTPUNode reports whether the machine is one of a TPU node, whose metadata server
// describes the TPU.
func (h *Host) IsOfTPUNode() bool { return mark.EngineOf(h.Spec) == schema.EngineTPU }

// BootKeys are where the machine states how far it has come until it reports, as the
// startup script does: first where it is to be.
func (h *Host) BootKeys() []string {
	keys := []string{store.BootKey(h.Spec.Name, h.Name)}
	if h.IsOfTPUNode() {
		keys = append([]string{store.BootKey(h.Spec.Name, strconv.Itoa(max(h.Number, 0)))}, keys...)
	}
	return keys
}

// ErrCopiedMachine reports that a machine has the metadata of another one's slice: it was
// made by copying that, and serves no host of it.
var ErrCopiedMachine = errors.New("this machine is a copy")

// checkMachine compares what the cloud itself reports of the machine with the slice that
// its metadata names, which a copy has as well.
func (h *Host) checkMachine(ctx context.Context, server metadataServer) error {
	if h.Zone != h.Spec.Zone {
		return h.copied("zone " + h.Zone)
	}
	if h.IsOfTPUNode() {
		node, err := nodeID(ctx, server)
		if err == nil && node != "" && node != h.Spec.Name {
			err = h.copied("node " + node)
		}
		return err
	}
	if h.Spec.Hosts == 1 {
		if h.Name != h.Spec.Name {
			return h.copied("instance " + h.Name)
		}
		return nil
	}
	by, err := server.get(ctx, attributePath("created-by"))
	switch {
	case errors.Is(err, errNotDefined):
		return h.copied("instance " + h.Name + ", which no instance group made")
	case err != nil:
		return err
	case path.Base(by.value) != h.Spec.Name:
		return h.copied("instance " + h.Name + " of group " + path.Base(by.value))
	}
	return nil
}

// nodeID is the name of the TPU node that the machine is of, "" where the metadata
// does not state it.
func nodeID(ctx context.Context, server metadataServer) (string, error) {
	env, err := server.get(ctx, attributePath("tpu-env"))
	if errors.Is(err, errNotDefined) {
		return "", nil
	}
	return tpuEnv(env.value, "NODE_ID"), err
}

func (h *Host) copied(is string) error {
	return fmt.Errorf("%w: its metadata %s is that of slice %s in %s, but it is %s; delete it, or take that metadata and the label %s away",
		ErrCopiedMachine, mark.KeySpec, h.Spec.Name, h.Spec.Zone, is, mark.StackLabel)
}

func attributePath(name string) string { return "instance/attributes/" + name }

// readNumber is the host's number in its slice, -1 where the machine has none.
func readNumber(ctx context.Context, server metadataServer, spec schema.SliceSpec) (int, error) {
	if spec.Hosts == 1 {
		return 0, nil
	}
	if mark.EngineOf(spec) == schema.EngineGCE {
		return -1, nil
	}
	number, err := server.get(ctx, attributePath("agent-worker-number"))
	if errors.Is(err, errNotDefined) {
		number, err = server.get(ctx, attributePath("tpu-env"))
		number.value = tpuEnv(number.value, "WORKER_ID")
	}
	if err != nil {
		return -1, err
	}
	n, err := strconv.Atoi(number.value)
	if err != nil || n < 0 || n >= spec.Hosts {
		return -1, fmt.Errorf("the metadata server reports that it is worker %q of %d", number.value, spec.Hosts)
	}
	return n, nil
}

// tpuEnv returns a value of the attribute tpu-env, which has lines such as
// "WORKER_ID: '0'".
func tpuEnv(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.Trim(strings.TrimSpace(value), `'"`)
		}
	}
	return ""
}

// ReportStatus reports the status of this machine where the cloud shows it: in the
// guest attribute fray/status, as the startup script does.
func ReportStatus(ctx context.Context, status string) error {
	return newMetadataServer().put(ctx, "instance/guest-attributes/fray/status", status)
}
