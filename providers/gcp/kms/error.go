package kms

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/providers/gcp/apierror"
)

// kmsOperation is what is done with a key.
type kmsOperation string

const (
	kmsEncrypt kmsOperation = "encrypt"
	kmsDecrypt kmsOperation = "decrypt"
)

// permission is what an operation needs on the key.
func (o kmsOperation) permission() string {
	switch o {
	case kmsEncrypt:
		return "cloudkms.cryptoKeyVersions.useToEncrypt"
	case kmsDecrypt:
		return "cloudkms.cryptoKeyVersions.useToDecrypt"
	}
	return ""
}

// fail returns what could not be done with which key, what the service answered,
// and what to do about it.
func (k *Key) fail(op kmsOperation, err error) error {
	if do := k.remedy(op, err); do != "" {
		return fmt.Errorf("%s with the KMS key %s: %w; %s", op, k.name, err, do)
	}
	return fmt.Errorf("%s with the KMS key %s: %w", op, k.name, err)
}

func (k *Key) remedy(op kmsOperation, err error) string {
	if do := apierror.Remedy(err); do != "" {
		return do
	}
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return ""
	}
	switch answer.Code {
	case http.StatusBadRequest:
		return k.rejected(op, answer)
	case http.StatusForbidden:
		return k.forbidden(op, answer)
	case http.StatusNotFound:
		return "there is no such key: correct its name, or create it (`gcloud kms keys create --purpose=encryption`)"
	case http.StatusTooManyRequests:
		return "too many requests are made of the project's keys; try again later"
	}
	return ""
}

// rejected distinguishes the reasons for a 400 by their texts, which are all that
// the service gives.
func (k *Key) rejected(op kmsOperation, answer *googleapi.Error) string {
	switch said := answer.Message; {
	case strings.Contains(said, "is not enabled"):
		return "enable or restore that version of the key (`gcloud kms keys versions enable`, `… restore`); " +
			"what a destroyed one has encrypted is lost"
	case strings.Contains(said, "purpose"):
		return "name a key that was created with --purpose=encryption"
	case op == kmsDecrypt:
		return "it was encrypted with another key than this, or was changed: name the key that it was encrypted with"
	}
	return ""
}

func (k *Key) forbidden(op kmsOperation, answer *googleapi.Error) string {
	if strings.Contains(answer.Message, "has not been used") || strings.Contains(answer.Body, "SERVICE_DISABLED") {
		return "enable the service (`gcloud services enable cloudkms.googleapis.com`) and wait for some minutes"
	}
	return fmt.Sprintf("the permission %s on the key is missing, or there is no such key: have its owner grant "+
		"roles/cloudkms.cryptoKeyEncrypterDecrypter on it (…Decrypter is enough for reading), or use other credentials", op.permission())
}
