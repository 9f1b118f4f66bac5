package check

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// needs are what jobs need of the networks of their machines.
type needs struct {
	slices int // of one attempt
	// ports are what the tasks serve at.
	ports []schema.Port
	// packages says that uv installs packages on the machines.
	packages bool
	// images are those from registries outside Google.
	images []string
}

func needsOf(j *schema.Job) needs {
	n := needs{slices: max(1, j.Resources.Slices), ports: j.Resources.Ports}
	n.packages = j.Environment.UV != nil && j.Environment.Image == ""
	if image := j.Environment.Image; image != "" && !isGoogleImage(image) {
		n.images = []string{image}
	}
	return n
}

// with adds the needs of another job on the same machines.
func (n needs) with(other needs) needs {
	return needs{
		slices:   max(n.slices, other.slices),
		ports:    append(slices.Clip(n.ports), other.ports...),
		packages: n.packages || other.packages,
		images:   append(slices.Clip(n.images), other.images...),
	}
}

// isGoogleImage reports whether an image is in one of Google's registries, which
// machines reach without an external address.
func isGoogleImage(image string) bool {
	registry, _, _ := strings.Cut(image, "/")
	return registry == "gcr.io" || strings.HasSuffix(registry, ".gcr.io") || strings.HasSuffix(registry, ".pkg.dev")
}

// isGang reports whether several hosts run one attempt together.
func (w *wish) isGang() bool { return w.spec.Hosts*w.needs.slices > 1 }

// outside is what machines fetch from outside of Google, "" for nothing.
func (w *wish) outside() string {
	var what []string
	if w.needs.packages {
		what = append(what, "the packages of its uv environment")
	}
	if len(w.needs.images) > 0 {
		what = append(what, "the image "+w.needs.images[0])
	}
	return strings.Join(what, " and ")
}
