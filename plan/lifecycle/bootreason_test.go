package lifecycle

import (
	"testing"

	"github.com/fray-ml/fray/schema"
)

// TestHostsOwnReasonIsShown: what hosts report at the cloud is in the reason to wait, and in that
// of the end of a slice whose hosts never reported.
func TestHostsOwnReasonIsShown(t *testing.T) {
	st := &schema.SliceStatus{
		Spec:   schema.SliceSpec{Name: "train-0", Zone: "us-west4-a", Hosts: 4},
		Reason: `host 1 reports "failed: no service account"`,
	}
	const waits = `1 of 4 hosts of slice train-0 in us-west4-a have not reported in yet: host 1 reports "failed: no service account"`
	if got := notUpYet(st, 1).Text; got != waits {
		t.Errorf("waits because %s, want %s", got, waits)
	}
	const ended = `1 of 4 hosts did not report in time: host 1 reports "failed: no service account"`
	if _, why := overdueBoot(st, 1); why.Text != ended {
		t.Errorf("ended because %s, want %s", why.Text, ended)
	}
	st.Reason = ""
	if _, why := overdueBoot(st, 1); why.Text != "1 of 4 hosts did not report in time" {
		t.Errorf("ended because %s", why.Text)
	}
}
