package execution

import (
	"github.com/fray-ml/fray/clusterapi"
)

// NotFound is the exit code of a command that could not be run, as shells have it.
const NotFound = 127

// Failure is the end of a command that was never begun, reported as a shell would.
type Failure struct {
	Code   int
	Reason string
	TTY    bool // it is written to a terminal
}

// Send sends the reason as standard error and then the code.
func (f *Failure) Send(stream Stream) error {
	end := "\n"
	if f.TTY { // whose driver would have made that of it
		end = "\r\n"
	}
	err := stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stderr{Stderr: []byte("fray: " + f.Reason + end)}})
	if err != nil {
		return err
	}
	return stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{ExitCode: int32(f.Code)}})
}
