package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// What JSON has no form for is an object of one of these keys.
const (
	formBytes = "$bytes"   // base64
	formTime  = "$time"    // RFC 3339
	formArray = "$ndarray" // {"dtype", "shape", "data": base64}
	formActor = "$actor"   // {"name", "namespace", "url"}
)

// printer writes trees as JSON: no spaces, keys sorted, floats with a point or an exponent.
type printer struct{ out []byte }

func writeJSON(s scope) ([]byte, error) {
	var p printer
	if !s.args {
		if err := p.value(s.result); err != nil {
			return nil, within(err, "result")
		}
		return p.out, nil
	}
	p.out = append(p.out, '[')
	if err := p.list(s.positional); err != nil {
		return nil, within(err, "args")
	}
	p.out = append(p.out, ',')
	if err := p.table(s.named); err != nil {
		return nil, within(err, "kwargs")
	}
	return append(p.out, ']'), nil
}

func (p *printer) value(tree any) error {
	switch v := tree.(type) {
	case nil:
		p.out = append(p.out, "null"...)
	case bool:
		p.out = strconv.AppendBool(p.out, v)
	case int64:
		p.out = strconv.AppendInt(p.out, v, 10)
	case uint64:
		p.out = strconv.AppendUint(p.out, v, 10)
	case float64:
		return p.float(v)
	case string:
		p.text(v)
	case []byte:
		p.form(formBytes, func() { p.base64(v) })
	case []any:
		return p.list(v)
	case map[string]any:
		return p.table(v)
	case map[any]any:
		return &Error{Problem: "a map key that is no string is not carried by JSON; send msgpack"}
	case rows:
		table := make(map[string]any, len(v))
		for _, r := range v {
			table[r.name] = r.value
		}
		return p.table(table)
	case time.Time:
		p.form(formTime, func() { p.text(v.Format(time.RFC3339Nano)) })
	case NDArray:
		p.form(formArray, func() { p.array(v) })
	case ActorRef:
		p.form(formActor, func() { p.actor(v) })
	}
	return nil
}

// float prints as Python does, so that a whole one is not read as an int.
func (p *printer) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return &Error{Problem: "NaN and infinities are not carried by JSON; send msgpack"}
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		p.out = strconv.AppendFloat(p.out, f, 'e', -1, 64)
		return nil
	}
	start := len(p.out)
	p.out = strconv.AppendFloat(p.out, f, 'f', -1, 64)
	if !bytes.ContainsRune(p.out[start:], '.') {
		p.out = append(p.out, ".0"...)
	}
	return nil
}

func (p *printer) text(s string) {
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string into memory: cannot fail
	p.out = append(p.out, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

func (p *printer) base64(data []byte) {
	p.out = append(p.out, '"')
	p.out = base64.StdEncoding.AppendEncode(p.out, data)
	p.out = append(p.out, '"')
}

func (p *printer) form(key string, content func()) {
	p.out = append(p.out, `{"`+key+`":`...)
	content()
	p.out = append(p.out, '}')
}

func (p *printer) array(a NDArray) {
	p.out = append(p.out, `{"dtype":"`+string(a.DType)+`","shape":[`...)
	for i, n := range a.Shape {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.out = strconv.AppendInt(p.out, int64(n), 10)
	}
	p.out = append(p.out, `],"data":`...)
	p.base64(a.Data)
	p.out = append(p.out, '}')
}

func (p *printer) actor(r ActorRef) {
	p.out = append(p.out, `{"name":`...)
	p.text(r.Name)
	p.out = append(p.out, `,"namespace":`...)
	p.text(r.Namespace)
	p.out = append(p.out, `,"url":`...)
	p.text(r.URL)
	if r.Member != "" {
		p.out = append(p.out, `,"member":`...)
		p.text(r.Member)
	}
	p.out = append(p.out, '}')
}

func (p *printer) list(list []any) error {
	p.out = append(p.out, '[')
	for i, v := range list {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		if err := p.value(v); err != nil {
			return within(err, indexStep(i))
		}
	}
	p.out = append(p.out, ']')
	return nil
}

func (p *printer) table(table map[string]any) error {
	p.out = append(p.out, '{')
	for i, k := range sortedKeys(table) {
		if strings.HasPrefix(k, "$") {
			return &Error{Problem: "a map key that begins with $ is not carried by JSON; send msgpack"}
		}
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.text(k)
		p.out = append(p.out, ':')
		if err := p.value(table[k]); err != nil {
			return within(err, keyStep(k))
		}
	}
	p.out = append(p.out, '}')
	return nil
}
