package selection

import "testing"

// A comma within quotes belongs to a key.
func TestCommaWithinQuotes(t *testing.T) {
	terms, err := parseFilter(`name=job.a["x,y"],state=failed`)
	if err != nil || len(terms) != 2 || terms[0].Value() != `job.a["x,y"]` {
		t.Errorf("got %v, %v", terms, err)
	}
}
