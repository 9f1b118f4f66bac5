package funcs

import (
	"encoding/base64"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"golang.org/x/crypto/blowfish"
)

// Costs of bcrypt; each more doubles the time.
const (
	leastCost, usualCost, mostCost = 4, 10, 15

	maxPassword = 72 // bytes that bcrypt reads
	saltSize    = 16
)

// bcryptFunc is Terraform's bcrypt with a salt that is chosen once the plan is applied.
func bcryptFunc(c *clock) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}},
		VarParam:     &function.Parameter{Type: cty.Number},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			cost := usualCost
			if len(args) > 2 {
				return cty.NilVal, function.NewArgErrorf(2, "want a text and a cost at most")
			}
			if len(args) == 2 {
				var err error
				if cost, err = wholeArgument(args, 1); err != nil {
					return cty.NilVal, err
				}
			}
			text := args[0].AsString()
			switch {
			case cost < leastCost || cost > mostCost:
				return cty.NilVal, function.NewArgErrorf(1, "want a cost from %d to %d", leastCost, mostCost)
			case len(text) > maxPassword:
				return cty.NilVal, function.NewArgErrorf(0, "the text has more than %d bytes", maxPassword)
			}
			salt, known := c.chosen()
			if !known {
				return cty.UnknownVal(cty.String), nil
			}
			hash, err := bcrypted(text, salt[:saltSize], cost)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(hash), nil
		},
	})
}

// bcrypted is the hash of a text, as golang.org/x/crypto/bcrypt makes it, which takes no
// salt: N. Provos and D. Mazieres, A Future-Adaptable Password Scheme, USENIX 1999.
func bcrypted(text string, salt []byte, cost int) (string, error) {
	key := append([]byte(text), 0)
	cipher, err := blowfish.NewSaltedCipher(key, salt)
	if err != nil {
		return "", fmt.Errorf("prepare the cipher: %w", err)
	}
	for range 1 << cost {
		blowfish.ExpandKey(key, cipher)
		blowfish.ExpandKey(salt, cipher)
	}
	data := []byte("OrpheanBeholderScryDoubt")
	for block := 0; block < len(data); block += blowfish.BlockSize {
		for range 64 {
			cipher.Encrypt(data[block:block+blowfish.BlockSize], data[block:block+blowfish.BlockSize])
		}
	}
	code := base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").WithPadding(base64.NoPadding)
	return fmt.Sprintf("$2a$%02d$%s%s", cost, code.EncodeToString(salt), code.EncodeToString(data[:len(data)-1])), nil
}
