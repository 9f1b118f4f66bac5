package store

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

func TestKeysOfLogsAreValid(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("ü", 300)
	for _, key := range []string{"a", "a/b", "a%2Fb", "../..", "/", ".", "..", "\x00\n", "\xff", long + "1", long + "2", `"`, ""} {
		job := schema.Address{Kind: schema.KindJob, Group: "g", Name: "j", Key: schema.StringKey(key)}.String() // as agents of old do without an id
		logs := LogKey(job, 1, 2, 3)
		if err := CheckKey(logs); err != nil {
			t.Errorf("id %q: %v", key, err)
		}
		if !strings.HasPrefix(logs, LogsOf(job, 1, 2)) || !strings.HasPrefix(logs, LogsOfJob(job)) {
			t.Errorf("id %q: %s is not below its prefixes", key, logs)
		}
		if other, ok := seen[logs]; ok {
			t.Errorf("ids %q and %q share %s", key, other, logs)
		}
		seen[logs] = key
	}
}
