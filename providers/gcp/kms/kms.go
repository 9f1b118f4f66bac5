package kms

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/api/cloudkms/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/client"
)

// Config configures OpenKMS.
type Config struct {
	// Key is "gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K", or that
	// without the scheme. Its purpose must be symmetric encryption.
	Key string
	// Endpoint replaces the service's, "http://127.0.0.1:4443/"; for tests.
	Endpoint string
	// HTTPClient does its own authentication; nil: application default
	// credentials.
	HTTPClient *http.Client
}

// name is the key's without its scheme.
func (c Config) name() string { return strings.TrimPrefix(c.Key, "gcp-kms://") }

func (c Config) validate() error {
	if !regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$`).MatchString(c.name()) {
		return fmt.Errorf("%q is no name of a key: want gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K, without a version", c.Key)
	}
	return nil
}

// Key encrypts and decrypts with a key of Cloud KMS, which stays there. The
// limit is the service's, 64 KiB, or 8 KiB for a key in hardware.
type Key struct {
	keys  *cloudkms.ProjectsLocationsKeyRingsCryptoKeysService
	name  string
	tempo client.Pace
}

// Open makes no request: whether the key is there is seen when it is used.
func Open(ctx context.Context, cfg Config) (*Key, error) {
	return open(ctx, cfg, client.ServicePace())
}

func open(ctx context.Context, cfg Config, t client.Pace) (*Key, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open KMS key: %w", err)
	}
	ctx = context.WithoutCancel(ctx) // it also fetches tokens later
	transport, err := newKMSTransport(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open KMS key %s: %w", cfg.name(), err)
	}
	options := []option.ClientOption{
		option.WithHTTPClient(client.New(transport, t.Stall)),
		option.WithLogger(slog.New(slog.DiscardHandler)), // the library's debug log would show what is encrypted
	}
	if cfg.Endpoint != "" {
		options = append(options, option.WithEndpoint(cfg.Endpoint))
	}
	service, err := cloudkms.NewService(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("open KMS key %s: make client: %w", cfg.name(), err)
	}
	return &Key{keys: service.Projects.Locations.KeyRings.CryptoKeys, name: cfg.name(), tempo: t}, nil
}

func newKMSTransport(ctx context.Context, cfg Config) (http.RoundTripper, error) {
	if cfg.HTTPClient != nil {
		return cmp.Or(cfg.HTTPClient.Transport, http.DefaultTransport), nil
	}
	return client.Authorized(ctx, client.API{Name: "cloudkms", Scope: cloudkms.CloudkmsScope}, cfg.Endpoint)
}

// Encrypt encrypts with the key's primary version.
func (k *Key) Encrypt(ctx context.Context, plaintext []byte) ([]byte, error) {
	request := &cloudkms.EncryptRequest{
		Plaintext:       base64.StdEncoding.EncodeToString(plaintext),
		PlaintextCrc32c: checksum(plaintext),
		ForceSendFields: []string{"PlaintextCrc32c"},
	}
	var ciphertext []byte
	err := k.call(ctx, func() error {
		reply, err := k.keys.Encrypt(k.name, request).Context(ctx).Do()
		if err != nil {
			return err
		}
		if !reply.VerifiedPlaintextCrc32c {
			return fmt.Errorf("the service did not check what it was sent: %w", client.ErrDamaged)
		}
		if !strings.HasPrefix(reply.Name, k.name+"/cryptoKeyVersions/") {
			return fmt.Errorf("it was encrypted with another key, %q: %w", reply.Name, client.ErrDamaged)
		}
		ciphertext, err = verified(reply.Ciphertext, reply.CiphertextCrc32c)
		return err
	})
	if err != nil {
		return nil, k.fail(kmsEncrypt, err)
	}
	return ciphertext, nil
}

// Decrypt decrypts what any version of the key has encrypted.
func (k *Key) Decrypt(ctx context.Context, ciphertext []byte) ([]byte, error) {
	request := &cloudkms.DecryptRequest{
		Ciphertext:       base64.StdEncoding.EncodeToString(ciphertext),
		CiphertextCrc32c: checksum(ciphertext),
		ForceSendFields:  []string{"CiphertextCrc32c"},
	}
	var plaintext []byte
	err := k.call(ctx, func() error {
		reply, err := k.keys.Decrypt(k.name, request).Context(ctx).Do()
		if err != nil {
			return err
		}
		plaintext, err = verified(reply.Plaintext, reply.PlaintextCrc32c)
		return err
	})
	if err != nil {
		return nil, k.fail(kmsDecrypt, err)
	}
	return plaintext, nil
}

// maxTorn is how many damaged replies in a row are an accident.
const maxTorn = 3

// call retries what may pass; both methods may be called any number of times.
func (k *Key) call(ctx context.Context, try func() error) error {
	torn := 0
	return k.tempo.Retry(ctx, func() error {
		err := legible(try())
		if !errors.Is(err, client.ErrDamaged) {
			return err
		}
		if torn++; torn < maxTorn {
			return err
		}
		return fmt.Errorf("%d replies in a row were damaged, something between here and the service changes them: %w", torn, &finalError{err})
	})
}

// finalError is one that is not tried again, whatever it wraps.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

// legible is a short text of what the service answered, and counts a reply that
// cannot be read among those that arrived damaged.
func legible(err error) error {
	if answer, ok := errors.AsType[*googleapi.Error](err); ok {
		return apierror.Response(answer)
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	if syntax || shape {
		return fmt.Errorf("%w: %w", client.ErrDamaged, err)
	}
	return err
}

// verified decodes a field of a reply that has arrived as it was sent.
func verified(field string, sum int64) ([]byte, error) {
	content, err := base64.StdEncoding.DecodeString(field)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrDamaged, err)
	}
	if checksum(content) != sum {
		return nil, fmt.Errorf("%w: its CRC32C is %d, not %d", client.ErrDamaged, checksum(content), sum)
	}
	return content, nil
}

// checksum is CRC-32C, as the service counts it.
func checksum(content []byte) int64 {
	return int64(crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
}
