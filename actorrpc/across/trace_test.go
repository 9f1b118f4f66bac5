package across

import "testing"

// The trace of a caller reaches the actor, and those that it calls.
func TestTraces(t *testing.T) {
	const (
		parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		other  = "00-11111111111111111111111111111111-2222222222222222-00"
	)
	others := map[language]*server{}
	for _, l := range languages() {
		others[l] = startServer(t, l, 0)
	}
	pairs(t, func(t *testing.T, c caller, s *server) {
		for _, trace := range []string{parent, other, ""} {
			direct := order{Do: "call", Address: s.address, Method: "trace", Args: "[[],{}]", Trace: trace}
			if got := c.do(t, direct); got.Value != `"`+trace+`"` {
				t.Errorf("the actor is told %s, want %q", got, trace)
			}
			for l, next := range others {
				ref := `{"$actor":{"name":"subject","namespace":"","url":"actor://` + next.address + `/subject"}}`
				forward := order{Do: "call", Address: s.address, Method: "forward", Args: `[[` + ref + `,"trace",[]],{}]`, Trace: trace}
				if got := c.do(t, forward); got.Value != `"`+trace+`"` {
					t.Errorf("the next actor, in %s, is told %s, want %q", l, got, trace)
				}
			}
		}
	})
}
