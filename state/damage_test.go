package state_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/state"
)

// damages change a document as disks, transfers and slips of the hand do.
var damages = map[string]func(r *rand.Rand, data []byte) []byte{
	"a bit": func(r *rand.Rand, data []byte) []byte {
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		return data
	},
	"a byte": func(r *rand.Rand, data []byte) []byte {
		data[r.IntN(len(data))] = byte(r.Uint32())
		return data
	},
	"a digit": func(r *rand.Rand, data []byte) []byte {
		at := r.IntN(len(data))
		for i := range data {
			if c := &data[(at+i)%len(data)]; *c >= '0' && *c <= '9' {
				*c = '0' + (*c-'0'+byte(1+r.IntN(9)))%10
				return data
			}
		}
		return data
	},
	"the end":   func(r *rand.Rand, data []byte) []byte { return data[:r.IntN(len(data))] },
	"the start": func(r *rand.Rand, data []byte) []byte { return data[1+r.IntN(len(data)-1):] },
	"a piece": func(r *rand.Rand, data []byte) []byte {
		at := r.IntN(len(data))
		return append(data[:at], data[min(len(data), at+1+r.IntN(400)):]...)
	},
	"a piece twice": func(r *rand.Rand, data []byte) []byte {
		at := r.IntN(len(data))
		end := min(len(data), at+1+r.IntN(400))
		return append(bytes.Clone(data[:end]), data[at:]...)
	},
	"zeros": func(r *rand.Rand, data []byte) []byte {
		at := r.IntN(len(data))
		clear(data[at:min(len(data), at+512)])
		return data
	},
	"a name": func(r *rand.Rand, data []byte) []byte {
		names := namesIn(data)
		at := names[r.IntN(len(names))]
		data[at] = 'a' + (data[at]-'a'+byte(1+r.IntN(24)))%26
		return data
	},
	"a name's case": func(r *rand.Rand, data []byte) []byte {
		names := namesIn(data)
		data[names[r.IntN(len(names))]] ^= 'a' ^ 'A'
		return data
	},
	"a member": func(r *rand.Rand, data []byte) []byte {
		names := namesIn(data)
		at := names[r.IntN(len(names))]
		return append(append(bytes.Clone(data[:at-1]), `"added":0,`...), data[at-1:]...)
	},
}

// namesIn are where the first letters of members' names are.
func namesIn(data []byte) []int {
	var found []int
	for i := 1; i < len(data); i++ {
		if data[i] < 'a' || data[i] > 'z' || data[i-1] != '"' {
			continue
		}
		if end := bytes.IndexByte(data[i:], '"'); end > 0 && i+end+1 < len(data) && data[i+end+1] == ':' {
			found = append(found, i)
		}
	}
	return found
}

// Ten thousand damaged documents of real shape: each is refused whole, or
// yields the identical document.
func TestNoDamageIsHalfLoaded(t *testing.T) {
	documents := map[string]state.Document{"sample": sample(t), "for_each": large(t, 12), "chain": chain(t, 12)}
	r := rand.New(rand.NewPCG(9, 13))
	tries := 10_000 / len(documents) / len(damages)
	done, refused := 0, 0
	for name, d := range documents {
		whole, err := state.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		want, err := state.Decode(whole)
		if err != nil {
			t.Fatal(err)
		}
		for kind, damage := range damages {
			for range tries + 1 {
				data := damage(r, bytes.Clone(whole))
				done++
				got, err := state.Decode(data)
				switch {
				case errors.Is(err, state.ErrDamaged), errors.Is(err, state.ErrEncrypted):
					refused++
				case err != nil:
					t.Errorf("%s with %s damaged: got %v, want ErrDamaged", name, kind, err)
				case !bytes.Equal(data, whole):
					t.Errorf("%s with %s damaged was read: %s", name, kind, cmp.Diff(want, got, same()))
				}
			}
		}
	}
	stored, err := state.Encode(large(t, 1_000))
	if err != nil {
		t.Fatal(err)
	}
	want, err := state.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 { // compressed: a bit that changes nothing is no damage
		data := damages["a bit"](r, bytes.Clone(stored))
		done++
		switch got, err := state.Decode(data); {
		case errors.Is(err, state.ErrDamaged):
			refused++
		case err != nil:
			t.Errorf("a compressed document with a bit damaged: got %v, want ErrDamaged", err)
		default:
			mustBeSame(t, want, got)
		}
	}
	if done < 10_000 || refused < done*9/10 {
		t.Errorf("got %d documents, %d of them refused, want 10000 and nearly all", done, refused)
	}
}
