package funcs

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/fray-ml/fray/lang/files"
)

// Moment is what functions return that are not of their arguments alone. It is
// recorded with a plan and with a configuration, so that either evaluates again to the
// same values. Of the zero Moment nothing is known.
type Moment struct {
	Planned time.Time `json:"planned,omitzero"` // what plantimestamp returns
	Applied time.Time `json:"applied,omitzero"` // what timestamp returns; zero before the plan is applied
	Seed    string    `json:"seed,omitempty"`   // secret; what uuid and bcrypt choose by once it is applied
}

// Begun is the moment once its plan is applied, at a time.
func (m Moment) Begun(now time.Time) Moment {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	m.Applied, m.Seed = now.UTC().Truncate(time.Second), hex.EncodeToString(seed[:])
	return m
}

// Place names one evaluation of one expression, the same whenever and wherever it is
// evaluated: values that are chosen at random are those of their place.
type Place string

// At is what one expression may call once the plan is applied. It is for one
// evaluation: each call of uuid returns another value. After that drew reports whether
// something was chosen at random, also in a template that was rendered.
func At(f files.Folder, m Moment, at Place) (functions map[string]function.Function, drew func() bool) {
	c := &clock{Moment: m, place: at}
	return functionsOf(f, c), func() bool { return c.calls > 0 }
}

// clock returns the values of a moment for one expression, call after call.
type clock struct {
	Moment

	place Place
	calls int
}

// chosen are 32 bytes that look random, others at each call. It reports false before
// the plan is applied.
func (c *clock) chosen() ([]byte, bool) {
	if c.Applied.IsZero() {
		return nil, false
	}
	c.calls++
	mac := hmac.New(sha256.New, []byte(c.Seed))
	_, _ = fmt.Fprintf(mac, "%d %s", c.calls, c.place)
	return mac.Sum(nil), true
}

// momentFunctions are those whose results are not of their arguments alone.
func momentFunctions(c *clock) []libraryFunction {
	return []libraryFunction{
		{
			name: "plantimestamp", text: "The time of the plan, as RFC 3339 writes it; a saved plan keeps it.", returns: "string", group: Times,
			fn: c.textFunc(func() (string, bool) { return rfc3339(c.Planned) }), example: `plantimestamp()`,
		},
		{
			name: "timestamp", text: "The time of the apply, as RFC 3339 writes it, known only after apply: each plan shows a change of what it is part of.", returns: "string", group: Times,
			fn: c.textFunc(func() (string, bool) { return rfc3339(c.Applied) }), example: `timestamp()`,
		},
		{
			name: "uuid", text: "A random UUID, known only after apply, another one for each call: each plan shows a change of what it is part of.", returns: "string", group: Hashes,
			fn: c.textFunc(c.uuid), example: `uuid()`,
		},
		{
			name: "bcrypt", text: "The bcrypt hash of a text with a random salt, known only after apply: each plan shows a change of what it is part of.", returns: "string", group: Hashes,
			fn: bcryptFunc(c), params: []string{"str: the text, of at most 72 bytes", "cost: from 4 to 15, 10 if left out"}, example: `bcrypt("hello")`,
		},
	}
}

func rfc3339(t time.Time) (string, bool) { return t.UTC().Format(time.RFC3339), !t.IsZero() }

// uuid is a UUID of version 4.
func (c *clock) uuid() (string, bool) {
	b, known := c.chosen()
	if !known {
		return "", false
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]), true
}

// textFunc makes a function without arguments whose text may not be known yet.
func (c *clock) textFunc(of func() (text string, known bool)) function.Function {
	return function.New(&function.Spec{
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			text, known := of()
			if !known {
				return cty.UnknownVal(cty.String), nil
			}
			return cty.StringVal(text), nil
		},
	})
}
