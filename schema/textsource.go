package schema

import (
	"encoding/json"
	"unique"
)

// Sources are the sensitive values that went into a secret: strings and numbers, as
// texts. They are comparable; the zero Sources are none.
type Sources struct {
	list unique.Handle[string] // in JSON
}

// SourcesFrom keeps values, sorted and each once.
func SourcesFrom(values []string) Sources {
	data, err := json.Marshal(values)
	if err != nil {
		data = []byte("[]") // strings encode
	}
	return Sources{unique.Make(string(data))}
}

// Values are the values of which the sources were made.
func (s Sources) Values() []string {
	if s == (Sources{}) {
		return nil
	}
	var values []string
	if json.Unmarshal([]byte(s.list.Value()), &values) != nil {
		return nil // see sourcesFrom
	}
	return values
}
