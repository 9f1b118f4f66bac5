package funcs

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

func hashFunctions() []libraryFunction {
	var fns []libraryFunction
	for _, d := range digests() {
		fns = append(fns, libraryFunction{
			name: d.name, text: d.text("a text"), returns: "string", fn: stringFunc(func(s string) (string, error) { return d.of([]byte(s)), nil }),
			params: []string{"str: the text"}, example: d.name + `("hello world")`,
		})
	}
	return append(fns, libraryFunction{
		name: "rsadecrypt", text: "The text that was encrypted for an RSA key, with the padding of PKCS #1 v1.5.", returns: "string", fn: rsaDecryptFunc(),
		params:  []string{"ciphertext: in base64", "privatekey: of RSA, in PEM, without a passphrase; its variable is best sensitive"},
		example: `rsadecrypt(filebase64("secret.bin"), file("key.pem"))`,
	}, libraryFunction{
		name: "uuidv5", text: "The UUID of version 5 of a name: equal names have equal ones.", returns: "string", fn: uuidFunc(),
		params:  []string{"namespace: dns, url, oid, x500 or a UUID", "name: the name within it"},
		example: `uuidv5("dns", "fray.example")`,
	})
}

// digest is one way to sum bytes up.
type digest struct {
	name, called, form string
	of                 func([]byte) string
}

func (d digest) text(what string) string {
	return fmt.Sprintf("%s of %s, in %s.", d.called, what, d.form)
}

// fileName is the name of the function that sums up a file.
func (d digest) fileName() string { return "file" + d.name }

func digests() []digest {
	inHex := func(b []byte) string { return hex.EncodeToString(b) }
	inBase64 := base64.StdEncoding.EncodeToString
	sum256 := func(b []byte) []byte { s := sha256.Sum256(b); return s[:] }
	sum512 := func(b []byte) []byte { s := sha512.Sum512(b); return s[:] }
	return []digest{
		{"base64sha256", "SHA-256", "base64", func(b []byte) string { return inBase64(sum256(b)) }},
		{"base64sha512", "SHA-512", "base64", func(b []byte) string { return inBase64(sum512(b)) }},
		{"md5", "MD5", "hex", func(b []byte) string { s := md5.Sum(b); return inHex(s[:]) }},
		{"sha1", "SHA-1", "hex", func(b []byte) string { s := sha1.Sum(b); return inHex(s[:]) }},
		{"sha256", "SHA-256", "hex", func(b []byte) string { return inHex(sum256(b)) }},
		{"sha512", "SHA-512", "hex", func(b []byte) string { return inHex(sum512(b)) }},
	}
}

func uuidFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			var space uuid.UUID
			switch name := args[0].AsString(); name {
			case "dns":
				space = uuid.NameSpaceDNS
			case "url":
				space = uuid.NameSpaceURL
			case "oid":
				space = uuid.NameSpaceOID
			case "x500":
				space = uuid.NameSpaceX500
			default:
				parsed, err := uuid.Parse(name)
				if err != nil {
					return cty.NilVal, function.NewArgErrorf(0, "%q is no namespace; want dns, url, oid, x500 or a UUID", name)
				}
				space = parsed
			}
			return cty.StringVal(uuid.NewSHA1(space, []byte(args[1].AsString())).String()), nil
		},
	})
}
