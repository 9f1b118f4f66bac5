package hosts

import (
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/clusterapi"
)

// counted counts the messages of a stream.
type counted struct {
	grpc.ServerStream
	came *atomic.Int64
}

func (c counted) RecvMsg(m any) error {
	err := c.ServerStream.RecvMsg(m)
	c.came.Add(1)
	return err
}

// spreading is a stream of a controller of very many hosts, which come back over eight seconds.
type spreading struct{ grpc.ServerStream }

func (s spreading) SendMsg(m any) error {
	for _, each := range m.(*clusterapi.ControllerMessages).GetMessages() {
		if each.GetWelcome() != nil {
			each.Welcome.Spread = 8000
		}
	}
	return s.ServerStream.SendMsg(m)
}
