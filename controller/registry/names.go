package registry

import (
	"encoding/json"

	"github.com/fray-ml/fray/schema"
)

// Variables is what the names of all variables of a host of actors begin with.
const Variables = "FRAY_ACTOR_"

// namesVariable is what tells a host of actors their names, as JSON: so the
// actors of a job are known before they register.
const namesVariable = Variables + "NAMES"

// NamesOf are the actors that a job says it hosts.
func NamesOf(job *schema.Job) []string {
	if job == nil {
		return nil
	}
	text, ok := job.Environment.Env[namesVariable]
	var names []string
	if !ok || text.IsUnknown() || text.IsSensitive() || json.Unmarshal([]byte(text.String()), &names) != nil {
		return nil
	}
	return names
}
