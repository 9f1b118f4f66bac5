package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/state/store"
)

// operation is what is done to an object.
type operation string

const (
	opGet      operation = "get"
	opPut      operation = "put"
	opList     operation = "list"
	opDelete   operation = "delete"
	opUpload   operation = "upload"
	opOpen     operation = "open"
	opVersions operation = "list versions of"
)

// permission is what an operation needs on the bucket, where the service does
// not say it itself.
func (o operation) permission() string {
	switch o {
	case opGet, opOpen:
		return "storage.objects.get"
	case opPut, opUpload:
		return "storage.objects.create"
	case opList, opVersions:
		return "storage.objects.list"
	case opDelete:
		return "storage.objects.delete"
	}
	return ""
}

// fail returns what could not be done to which object, what the service answered,
// and what to do about it.
func (b *Bucket) fail(op operation, key string, err error) error {
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNoVersions) {
		return fmt.Errorf("%s %s: %w", op, b.url(key), err)
	}
	if apierror.StatusOf(err) == http.StatusForbidden {
		err = forbiddenError{err}
	}
	if do := b.remedy(op, err); do != "" && errors.Is(err, errNoBucket) {
		return fmt.Errorf("%s %s: %s", op, b.url(key), do) // the service's text repeats it
	} else if do != "" {
		return fmt.Errorf("%s %s: %w; %s", op, b.url(key), err, do)
	}
	return fmt.Errorf("%s %s: %w", op, b.url(key), err)
}

// forbiddenError marks an error as one of missing rights.
type forbiddenError struct{ error }

func (e forbiddenError) Unwrap() error { return e.error }

// Is reports whether a target is what missing rights are in the library.
func (forbiddenError) Is(target error) bool { return target == fs.ErrPermission }

func (b *Bucket) remedy(op operation, err error) string {
	if do := apierror.Remedy(err); do != "" {
		return do
	}
	if errors.Is(err, errNoBucket) {
		return fmt.Sprintf("there is no bucket %s: create it (`gcloud storage buckets create gs://%[1]s`) or correct its name", b.cfg.Bucket)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" && b.cfg.Endpoint != "" {
		return fmt.Sprintf("nothing answers at %s, the emulator that FRAY_GCP_ENDPOINT names: start it there again, or correct the variable", dial.Addr)
	}
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return ""
	}
	switch answer.Code {
	case http.StatusForbidden:
		return b.forbidden(op, answer)
	case http.StatusTooManyRequests:
		return "others write that object too, or too many requests are made of the bucket; try again later"
	}
	return ""
}

func (b *Bucket) forbidden(op operation, answer *googleapi.Error) string {
	said := answer.Message + answer.Body
	if strings.Contains(said, "KMS") || strings.Contains(said, "cloudkms") {
		return fmt.Sprintf("let the project's Cloud Storage service agent use the key %s (roles/cloudkms.cryptoKeyEncrypterDecrypter), "+
			"or name another one", cmp.Or(b.cfg.KMSKey, "of the bucket"))
	}
	missing := cmp.Or(regexp.MustCompile(`storage\.[a-z]+\.[a-zA-Z]+`).FindString(said), op.permission())
	return fmt.Sprintf("the permission %s on the bucket %s is missing: have its owner grant roles/storage.objectUser on it, or use other credentials",
		missing, b.cfg.Bucket)
}

// errNoBucket marks the answer that the bucket is not there.
var errNoBucket = errors.New("storage: bucket doesn't exist")

// ofBucket marks an error of a request about the bucket as such.
func ofBucket(err error) error {
	if apierror.StatusOf(err) == http.StatusNotFound {
		return fmt.Errorf("%w: %w", errNoBucket, err)
	}
	return err
}

// absent turns the answer that an object is not there into ErrNotFound, unless
// it is the bucket that is not there, which must not pass for an empty one.
func (b *Bucket) absent(ctx context.Context, err error) error {
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok || answer.Code != http.StatusNotFound {
		return err
	}
	if strings.Contains(answer.Message+answer.Body, "No such object") {
		return store.ErrNotFound
	}
	if err := b.check(ctx); err != nil {
		return err
	}
	return store.ErrNotFound
}

// homeless says of a write that found nothing to write to whether it was the
// bucket that was missing, or the session of an upload in chunks.
func (b *Bucket) homeless(ctx context.Context, err error) error {
	if status := apierror.StatusOf(err); status != http.StatusNotFound && status != http.StatusGone {
		return err
	}
	if err := b.check(ctx); err != nil {
		return err
	}
	return fmt.Errorf("the service has forgotten what was sent so far, try again: %w", err)
}
