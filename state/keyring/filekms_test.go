package keyring_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/state/keyring"
)

func keyFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openFile(t *testing.T, path string) keyring.KMS {
	t.Helper()
	k, err := keyring.OpenFileKMS(t.Context(), "file://"+path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// One key in all the ways of writing it down is one key.
func TestFileKMSReadsItsKey(t *testing.T) {
	key := make([]byte, 32)
	rand.Read(key)
	key[0], key[31] = '\n', ' ' // raw ones may look like spaces at their ends
	contents := map[string]string{
		"raw": string(key), "hexadecimal": hex.EncodeToString(key), "upper case": strings.ToUpper(hex.EncodeToString(key)) + "\n",
		"base64": base64.StdEncoding.EncodeToString(key) + "\r\n",
	}
	wrapped, err := openFile(t, keyFile(t, key)).Encrypt(t.Context(), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range contents {
		got, err := openFile(t, keyFile(t, []byte(content))).Decrypt(t.Context(), wrapped)
		if err != nil || string(got) != "hello" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestFileKMSRefusesWhatIsNoKey(t *testing.T) {
	const want = "want 32 random bytes: as they are, as 64 hexadecimal digits (`openssl rand -hex 32`) or as base64 (`openssl rand -base64 32`)"
	tests := []struct{ name, content, says string }{
		{"empty", "", "it holds 0 bytes, in no form that is known"},
		{"half a key in hexadecimal", strings.Repeat("ab", 16), "it holds 16 bytes in hexadecimal"},
		{"too much hexadecimal", strings.Repeat("ab", 33) + "\n", "it holds 33 bytes in hexadecimal"},
		{"half a key in base64", "AAAAAAAAAAAAAAAAAAAAAA==\n", "it holds 16 bytes in base64"},
		{"a passphrase", "correct horse battery staple", "it holds 28 bytes, in no form that is known"},
		{"raw, but short", "\x00" + strings.Repeat("\xff", 30), "it holds 31 bytes, in no form that is known"},
		{"raw, but long", strings.Repeat("\xff", 33), "it holds 33 bytes, in no form that is known"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := keyFile(t, []byte(test.content))
			_, err := keyring.OpenFileKMS(t.Context(), "file://"+path)
			wantError(t, err, nil, "key file "+path+": "+test.says+": "+want)
		})
	}
}

func TestFileKMSRefusesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	_, err := keyring.OpenFileKMS(t.Context(), "file://"+missing)
	wantError(t, err, fs.ErrNotExist, "key file "+missing+": file does not exist: put the key there, or make one and keep it safe", "openssl rand -base64 32")
	_, err = keyring.OpenFileKMS(t.Context(), "file://"+filepath.Dir(missing))
	wantError(t, err, nil, "it is no file")
	_, err = keyring.OpenFileKMS(t.Context(), missing)
	wantError(t, err, nil, "want file:///path/to/key")
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o602} {
		path := keyFile(t, make([]byte, 32))
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err = keyring.OpenFileKMS(t.Context(), "file://"+path)
		wantError(t, err, nil, fmt.Sprintf("others may read it (%v), so it is no secret: `chmod 600` it", mode))
	}
}

func TestCreateKeyFile(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0)) // the file is private whatever the umask is
	path := filepath.Join(t.TempDir(), "key")
	if err := keyring.CreateKeyFile(path); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	openFile(t, path)
	if err := keyring.CreateKeyFile(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another: got %v, want fs.ErrExist", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the first key is gone: %v", err)
	}
}

func TestFileKMSNoticesChanges(t *testing.T) {
	k := openFile(t, keyFile(t, bytes.Repeat([]byte{7}, 32)))
	wrapped, err := k.Encrypt(t.Context(), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := k.Encrypt(t.Context(), []byte("hello")); bytes.Equal(again, wrapped) {
		t.Error("equal texts are encrypted alike")
	}
	for i := range wrapped {
		changed := bytes.Clone(wrapped)
		changed[i] ^= 0x10
		if got, err := k.Decrypt(t.Context(), changed); err == nil {
			t.Errorf("with byte %d changed: got %q", i, got)
		}
		if got, err := k.Decrypt(t.Context(), wrapped[:i]); !errors.Is(err, keyring.ErrDamaged) {
			t.Errorf("%d bytes: got %q, %v, want ErrDamaged", i, got, err)
		}
	}
}

func TestFileKMSTellsKeysApart(t *testing.T) {
	path := keyFile(t, bytes.Repeat([]byte{8}, 32))
	wrapped, err := openFile(t, keyFile(t, bytes.Repeat([]byte{7}, 32))).Encrypt(t.Context(), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = openFile(t, path).Decrypt(t.Context(), wrapped)
	wantError(t, err, nil, "key file "+path+" holds another key than the one that wrapped this", "put that one there")
	if errors.Is(err, keyring.ErrDamaged) {
		t.Errorf("%v passes for damage", err)
	}
	if got, want := fmt.Sprintf("%v %#v", openFile(t, path), openFile(t, path)), "file://"+path+" file://"+path; got != want {
		t.Errorf("printed as %s, want %s", got, want)
	}
}
