package notices

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Headers of webhook messages, as Standard Webhooks has them
// (https://github.com/standard-webhooks/standard-webhooks).
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// secretPrefix begins secrets in the form of Standard Webhooks; base64 follows.
const secretPrefix = "whsec_"

// Sign is the signature of a message: "v1," and the base64 of the HMAC-SHA256 of id, timestamp in
// seconds and body, with dots between them.
func Sign(secret, id string, at time.Time, body []byte) string {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			key = decoded
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
