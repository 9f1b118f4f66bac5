package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/state/store"
)

// Limits of uploads, in bytes.
const (
	maxUpload     = 4 << 30
	maxUploadPart = 1 << 20
)

func isSum(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == s
}

// Upload keeps a blob, which becomes visible once its content was found to be
// what its name says.
func (c *Server) Upload(stream grpc.ClientStreamingServer[clusterapi.UploadRequest, clusterapi.UploadResponse]) error {
	ctx := stream.Context()
	if _, err := caller.Known(ctx); err != nil {
		return err
	}
	head, err := stream.Recv()
	if err != nil {
		return uploadError(err)
	}
	if wrong := uploadMistakes(head); len(wrong) > 0 {
		return badrequest.Of(wrong...)
	}
	key := store.BundleKey(head.GetSha256())
	there, err := c.Store.List(ctx, key)
	if err != nil {
		return status.Errorf(codes.Unavailable, "look for %s: %v", head.GetSha256(), err)
	}
	if len(there) > 0 {
		return stream.SendAndClose(&clusterapi.UploadResponse{Existed: true})
	}
	content := &upload{stream: stream, head: head, part: head.GetData(), sum: sha256.New()}
	if err := c.Store.Upload(ctx, key, content); err != nil {
		if content.failure != nil {
			return content.failure
		}
		return status.Errorf(codes.Unavailable, "keep %s: %v", head.GetSha256(), err)
	}
	return stream.SendAndClose(&clusterapi.UploadResponse{})
}

func uploadMistakes(head *clusterapi.UploadRequest) []langrequest.Mistake {
	var wrong []langrequest.Mistake
	if !isSum(head.GetSha256()) {
		wrong = append(wrong, langrequest.Mistake{Path: "sha256", Summary: "Invalid value for sha256", Detail: "Want the SHA-256 of the content: 64 lower-case hexadecimal digits, in the first message."})
	}
	if n := head.GetSize(); n < 0 || n > maxUpload {
		wrong = append(wrong, langrequest.Mistake{Path: "size", Summary: "Invalid value for size", Detail: fmt.Sprintf("Want the number of bytes in all, at most %d, this is %d.", maxUpload, n)})
	}
	return wrong
}

// upload reads the parts of a blob. It ends with an error, so that nothing is
// kept, unless they are what was announced.
type upload struct {
	stream  grpc.ClientStreamingServer[clusterapi.UploadRequest, clusterapi.UploadResponse]
	head    *clusterapi.UploadRequest
	part    []byte // what is left of the last message
	sum     hash.Hash
	read    int64
	failure error // a status
}

func (u *upload) Read(p []byte) (int, error) {
	if u.failure != nil {
		return 0, u.failure
	}
	for len(u.part) == 0 {
		message, err := u.stream.Recv()
		if errors.Is(err, io.EOF) {
			return 0, u.finished()
		}
		if err != nil {
			u.failure = uploadError(err)
			return 0, u.failure
		}
		u.part = message.GetData()
	}
	if len(u.part) > maxUploadPart || u.read+int64(len(u.part)) > u.head.GetSize() {
		u.failure = status.Errorf(codes.InvalidArgument, "data: more than the %d bytes that were announced, or a part of more than %d", u.head.GetSize(), maxUploadPart)
		return 0, u.failure
	}
	n := copy(p, u.part)
	u.sum.Write(u.part[:n])
	u.part = u.part[n:]
	u.read += int64(n)
	return n, nil
}

func (u *upload) finished() error {
	got := hex.EncodeToString(u.sum.Sum(nil))
	switch {
	case u.read != u.head.GetSize():
		u.failure = status.Errorf(codes.InvalidArgument, "size: %d bytes were announced, %d came", u.head.GetSize(), u.read)
	case got != u.head.GetSha256():
		u.failure = status.Errorf(codes.InvalidArgument, "sha256: the content's is %s, not %s: nothing was kept", got, u.head.GetSha256())
	default:
		return io.EOF
	}
	return u.failure
}

func uploadError(err error) error {
	if errors.Is(err, io.EOF) {
		return status.Error(codes.InvalidArgument, "the upload has no message: begin with sha256 and size")
	}
	return err
}
