package ray

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// cluster is what one reading of the cluster shows. Groups and nodes are read only where they
// matter.
type cluster struct {
	slices map[string]history
	groups map[string]groupState // by name
	nodes  []node
}

// status is how a slice stands, false where it is gone.
func (c *cluster) status(h history) (schema.SliceStatus, bool) {
	of := h.subject()
	st := schema.SliceStatus{Spec: of.spec, CreatedAt: of.createdAt()}
	switch h.stands() {
	case standsGone:
		return schema.SliceStatus{}, false
	case standsGoing:
		st.Phase, st.Reason = schema.SliceDeleting, "its agents are ending"
	case standsDead:
		st.Phase = schema.SliceDead
		st.Cause, st.Reason = of.failure()
	case standsLive:
		c.live(of, &st)
	}
	return st, true
}

// live fills in how far a submission has come.
func (c *cluster) live(a *attempt, st *schema.SliceStatus) {
	st.Phase = schema.SliceCreating
	if a.Status == jobPending {
		st.Reason = "Ray: " + strings.TrimSpace(a.Message)
		return
	}
	main, hasMain := c.groups[a.SubmissionID]
	head, hasHead := c.groups[a.SubmissionID+headSuffix]
	switch {
	case main == groupCreated:
		st.Phase = schema.SliceReady
	case main == groupRescheduling || head == groupRescheduling:
		st.Reason = "Ray: a node of its placement group died"
	case hasMain || hasHead:
		st.Waiting = true
		st.Reason = "Ray: " + c.whyPending(a)
	default:
		st.Reason = "Ray: its driver is starting"
	}
}

// headSuffix is what the driver appends to the name of the group that only finds a TPU's first host.
const headSuffix = "-head"

func (c *cluster) whyPending(a *attempt) string {
	var l launch
	if err := json.Unmarshal([]byte(a.Metadata[keyLaunch]), &l); err != nil || len(l.Bundles) == 0 {
		return "its placement group is pending"
	}
	why, _ := whyPending(l.Bundles, l.TPUHead, c.nodes)
	return why
}

// isPlacing reports whether any of the submissions that run waits for its placement group.
func (c *cluster) isPlacing(stack string) bool {
	for _, h := range c.slices {
		if a := h.subject(); owns(stack, a) && a.Status == jobRunning && c.groups[a.SubmissionID] != groupCreated {
			return true
		}
	}
	return false
}

// isRunning reports whether any submission runs, so that placement groups matter.
func (c *cluster) isRunning(stack string) bool {
	for _, h := range c.slices {
		if a := h.subject(); owns(stack, a) && a.Status == jobRunning {
			return true
		}
	}
	return false
}

func owns(stack string, a *attempt) bool { return stack == "" || a.stack() == stack }

// inventory is what a stack has of a cluster, or any stack for "".
func (c *cluster) inventory(stack string) schema.Inventory {
	var in schema.Inventory
	for _, h := range c.slices {
		of := h.subject()
		switch gone := h.stands() == standsGone; {
		case gone:
		case !owns(stack, of):
			in.Foreign++
		case of.bad != nil:
			in.Skipped = append(in.Skipped, of.unreadable())
		default:
			if st, there := c.status(h); there {
				in.Slices = append(in.Slices, st)
			}
		}
	}
	slices.SortFunc(in.Slices, func(a, b schema.SliceStatus) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	slices.SortFunc(in.Skipped, func(a, b schema.SkippedItem) int { return strings.Compare(a.Name, b.Name) })
	return in
}
