package funcs

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"golang.org/x/crypto/ssh"
)

// rsaDecryptFunc is Terraform's rsadecrypt: PKCS #1 v1.5, of base64. Its errors repeat
// neither key nor text.
func rsaDecryptFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			secret, err := base64.StdEncoding.DecodeString(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "it is no base64")
			}
			parsed, err := ssh.ParseRawPrivateKey([]byte(args[1].AsString()))
			var missing *ssh.PassphraseMissingError
			switch {
			case errors.As(err, &missing):
				return cty.NilVal, function.NewArgErrorf(1, "the key has a passphrase; want one without")
			case err != nil:
				return cty.NilVal, function.NewArgErrorf(1, "it is no private key in PEM")
			}
			key, is := parsed.(*rsa.PrivateKey)
			if !is {
				return cty.NilVal, function.NewArgErrorf(1, "the key is not of RSA")
			}
			text, err := rsa.DecryptPKCS1v15(nil, key, secret)
			if err != nil {
				return cty.NilVal, errors.New("the key does not decrypt the text")
			}
			return cty.StringVal(string(text)), nil
		},
	})
}
