package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"
)

// IdentityVariable is the environment variable that lists identity files,
// separated as in PATH.
const IdentityVariable = "FRAY_AGE_IDENTITY"

// Environment is where identities are searched.
type Environment struct {
	AgeIdentity string // the value of IdentityVariable; "": where identities usually are
	ConfigDir   string // the user's, os.UserConfigDir; "": unknown
	HomeDir     string // "": unknown
}

// IdentityFiles are the files to search for identities: those that are named,
// or else the user's fray/identities.txt and, where the key is wrapped for SSH
// keys, the SSH key that belongs to that kind.
func (k *Keyring) IdentityFiles(e Environment) []string {
	if e.AgeIdentity != "" {
		return slices.DeleteFunc(filepath.SplitList(e.AgeIdentity), func(path string) bool { return path == "" })
	}
	var files []string
	if e.ConfigDir != "" {
		files = append(files, filepath.Join(e.ConfigDir, "fray", "identities.txt"))
	}
	if e.HomeDir == "" {
		return files
	}
	for _, kind := range []string{"ed25519", "rsa"} {
		if slices.ContainsFunc(k.Recipients, func(r string) bool { return strings.HasPrefix(r, "ssh-"+kind+" ") }) {
			files = append(files, filepath.Join(e.HomeDir, ".ssh", "id_"+kind))
		}
	}
	return files
}

const maxIdentityFile = 1 << 20 // bytes

// loadIdentities reads an identity file or SSH private key. Its errors are said
// beside the path, and hold nothing of the content.
func loadIdentities(path string) ([]age.Identity, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such file")
	}
	if err != nil {
		return nil, pathless(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIdentityFile))
	if err != nil {
		return nil, pathless(err)
	}
	return parseIdentities(data)
}

func parseIdentities(data []byte) ([]age.Identity, error) {
	text := bytes.TrimSpace(data)
	switch {
	case len(text) == 0:
		return nil, errors.New("it is empty")
	case bytes.HasPrefix(text, []byte("age-encryption.org/")), bytes.HasPrefix(text, []byte("-----BEGIN AGE ENCRYPTED FILE-----")):
		return nil, errors.New("it is itself encrypted with age, and fray does not ask for passphrases: decrypt it, or use another")
	case bytes.HasPrefix(text, []byte("-----BEGIN ")):
		return parseSSHIdentity(data)
	case bytes.HasPrefix(text, []byte("ssh-")), bytes.HasPrefix(text, []byte("age1")):
		return nil, errors.New("it holds a public key, and the secret one is needed")
	case bytes.Contains(data, []byte("AGE-PLUGIN-")):
		return nil, errors.New("it needs an age plugin, which fray does not run")
	}
	identities, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("no age identity file and no SSH private key: %w", identityReason(err))
	}
	return identities, nil
}

// identityReason keeps of the library's message where the mistake is: what
// follows may tell characters of a secret.
func identityReason(err error) error {
	if place, _, ok := strings.Cut(err.Error(), ": "); ok {
		return errors.New(place)
	}
	return err
}

func parseSSHIdentity(data []byte) ([]age.Identity, error) {
	identity, err := agessh.ParseIdentity(data)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		return nil, errors.New("an SSH key with a passphrase, which fray does not ask for: " +
			"use an SSH key without one, or an age identity made with age-keygen")
	}
	if err != nil {
		return nil, errors.New("no SSH private key of type ed25519 or rsa")
	}
	return []age.Identity{identity}, nil
}
