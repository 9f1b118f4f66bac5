package kms

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
)

// kmsWire is the two methods of the service over real connections, as its
// reference describes them, and breaks what it is told to.
type kmsWire struct {
	*httptest.Server
	asked atomic.Int64
	look  func(*http.Request)

	mu     sync.Mutex
	faults []clienttest.Fault // for the requests to come
	every  *clienttest.Fault  // in place of faults
}

func newKMSWire(t *testing.T) *kmsWire {
	t.Helper()
	w := &kmsWire{look: func(*http.Request) {}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.CloseClientConnections() // ends what stalls
		w.Close()
	})
	return w
}

func (w *kmsWire) inject(faults ...clienttest.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, faults...)
}

func (w *kmsWire) always(f clienttest.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.every = &f
}

func (w *kmsWire) next() (clienttest.Fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.every != nil {
		return *w.every, true
	}
	if len(w.faults) == 0 {
		return clienttest.Fault{}, false
	}
	f := w.faults[0]
	w.faults = w.faults[1:]
	return f, true
}

func (w *kmsWire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.asked.Add(1)
	w.look(r)
	f, ok := w.next()
	served := httptest.NewRecorder()
	serveKMS(served, r)
	if f.Then != nil {
		f.Then()
	}
	switch {
	case !ok:
		clienttest.Reply(out, served)
	case f.Damage != nil:
		f.Damage(out, served)
	case f.Stall:
		<-r.Context().Done()
	case f.Status != 0:
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(f.Status)
		fmt.Fprint(out, f.Body)
	default:
		clienttest.Cut(out)
	}
}

// replaced sends the reply with a part of it changed, which must be there.
func replaced(pattern, by string) func(http.ResponseWriter, *httptest.ResponseRecorder) {
	return func(out http.ResponseWriter, served *httptest.ResponseRecorder) {
		body := served.Body.Bytes()
		changed := regexp.MustCompile(pattern).ReplaceAll(body, []byte(by))
		if bytes.Equal(body, changed) {
			panic(fmt.Sprintf("there is no %s in %s", pattern, body))
		}
		maps.Copy(out.Header(), served.Header())
		out.WriteHeader(served.Code)
		_, _ = out.Write(changed)
	}
}

// kmsMessage is what both methods take and return; integers are text.
type kmsMessage struct {
	Name                    string `json:"name,omitempty"`
	Plaintext               string `json:"plaintext,omitempty"`
	PlaintextCrc32c         string `json:"plaintextCrc32c,omitempty"`
	Ciphertext              string `json:"ciphertext,omitempty"`
	CiphertextCrc32c        string `json:"ciphertextCrc32c,omitempty"`
	VerifiedPlaintextCrc32c bool   `json:"verifiedPlaintextCrc32c,omitempty"`
}

func serveKMS(out http.ResponseWriter, r *http.Request) {
	name, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), ":")
	var asked, answered kmsMessage
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil || r.Method != http.MethodPost {
		reject(out, http.StatusBadRequest, fmt.Sprint("Invalid request: ", r.Method, err))
		return
	}
	switch method {
	case "encrypt":
		plaintext, ok := received(asked.Plaintext, asked.PlaintextCrc32c)
		if !ok {
			reject(out, http.StatusBadRequest, "The checksum in field plaintext_crc32c did not match the data in field plaintext.")
			return
		}
		nonce := make([]byte, 12)
		rand.Read(nonce)
		ciphertext := keyOf(name).Seal(nonce, nonce, plaintext, nil)
		answered = kmsMessage{Name: name + "/cryptoKeyVersions/1", VerifiedPlaintextCrc32c: true,
			Ciphertext: base64.StdEncoding.EncodeToString(ciphertext), CiphertextCrc32c: castagnoli(ciphertext)}
	case "decrypt":
		ciphertext, ok := received(asked.Ciphertext, asked.CiphertextCrc32c)
		if !ok || len(ciphertext) < 12 {
			reject(out, http.StatusBadRequest, "The checksum in field ciphertext_crc32c did not match the data in field ciphertext.")
			return
		}
		plaintext, err := keyOf(name).Open(nil, ciphertext[:12], ciphertext[12:], nil)
		if err != nil {
			reject(out, http.StatusBadRequest, "Decryption failed: verify that 'name' refers to the correct CryptoKey.")
			return
		}
		answered = kmsMessage{Plaintext: base64.StdEncoding.EncodeToString(plaintext), PlaintextCrc32c: castagnoli(plaintext)}
	default:
		reject(out, http.StatusNotFound, "Method not found.")
		return
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(answered)
}

func reject(out http.ResponseWriter, code int, message string) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	fmt.Fprintf(out, `{"error":{"code":%d,"message":%q}}`, code, message)
}

// received decodes a field, whose checksum must be there and right.
func received(field, sum string) ([]byte, bool) {
	content, err := base64.StdEncoding.DecodeString(field)
	return content, err == nil && sum == castagnoli(content)
}

func castagnoli(content []byte) string {
	return strconv.FormatUint(uint64(crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))), 10)
}

// keyOf is another key for each name.
func keyOf(name string) cipher.AEAD {
	key := sha256.Sum256([]byte(name))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}
