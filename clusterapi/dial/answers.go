package dial

import (
	"context"
	"crypto/tls"
	"fmt"
)

// Answers returns nil if the process that serves under the certificate of a
// fingerprint answers at an address (host:port) before ctx ends, else why it does
// not. It makes no call: that a process which hangs is connected to by its system
// is no answer, that it proves to have the certificate's key is one.
func Answers(ctx context.Context, address, fingerprint string) error {
	config, err := ClientTLS(fingerprint)
	if err != nil {
		return err
	}
	config.NextProtos = []string{"h2"} // of gRPC
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("ask %s whether it answers: %w", address, err)
	}
	return conn.Close()
}
