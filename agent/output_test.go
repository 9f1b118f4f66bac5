package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/agent/mask"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func sealedText(t *testing.T, s string) schema.Text {
	t.Helper()
	text, err := schema.Secret(s).Seal(rot{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// everything is what files below a directory hold.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestWhatWentIntoTextsIsMasked holds that no part of a secret reaches the
// store or the host's log, however the task writes it.
func TestWhatWentIntoTextsIsMasked(t *testing.T) {
	r := newRig(t)
	const secret = "hunter2-and-more"
	j := job(`echo "password $PW"; begin=${PW%%-*}; end=${PW#"$begin"}
		printf 'split %s' "$begin"; sleep 0.5; printf '%s\n' "$end"; printf '%s\n%s\n' "$begin" "$end"
		printf '%s' "user:$PW" | base64; echo "$URL"; echo plain >&2; echo "last $PW"; exit 3`)
	j.Environment.Env = map[string]schema.Text{"URL": sealedText(t, "https://me:"+secret+"@host"), "PW": schema.Plain(secret)}
	j.Sensitive = []schema.Text{sealedText(t, secret)}
	r.assign(&j)
	report := r.await("the end", func(h state.HostReport) bool {
		return h.Task != nil && h.Task.State == schema.TaskFailed
	})
	tail := strings.Join(report.Task.Tail, "\n")
	if !strings.HasSuffix(tail, "\nplain\nlast "+mask.Marker) || !strings.HasPrefix(tail, "password "+mask.Marker) {
		t.Errorf("last lines %q, want them with the secret masked", tail)
	}
	kept := everything(t, filepath.Join(filepath.Dir(r.dir), "store")) + everything(t, r.dir)
	kept = strings.ReplaceAll(kept, `"PW":"`+secret+`"`, "") // the test's own plain variable, in the assignment
	for _, part := range []string{"hunter2", "and-more", "aHVudGVyM", "dXNlcjpodW50ZXI"} {
		if strings.Contains(kept, part) {
			t.Errorf("%q is kept in clear:\n%s", part, kept)
		}
	}
}
