package host

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// submit leads a call to its mailbox. If that cannot be, or there is a rejection
// already, it returns the answer, which the caller is to hand out; else nil.
func (s *Server) submit(c *call, rejection *rpcerror.Error) *answer {
	s.active.Add(1)
	if rejection == nil {
		rejection = s.admit(c)
	}
	if rejection != nil {
		return c.failed(rejection)
	}
	c.actor.pending.Add(1)
	c.advance(phaseUnbegun, phaseWaits)
	if size := s.waiting.Add(c.size()); size > maxWaitingBytes {
		return c.drop(busy("calls with %s of arguments wait in this server", bytesText(uint64(size))))
	}
	if c.from != nil && c.from.session.incoming.holds(c) {
		return s.late(c)
	}
	return s.push(c)
}

// push leads a call that need not wait for arguments to its mailbox, or returns the answer.
func (s *Server) push(c *call) *answer {
	if !c.method.box.push(c) {
		return c.drop(busy("%d calls wait for this actor", maxMailbox))
	}
	return s.late(c)
}

// late is the answer to a call that has come in behind what answers all that wait, nil to any other.
func (s *Server) late(c *call) *answer {
	switch {
	case s.stopping.Load():
		return c.drop(stopping(false))
	case c.actor.gone.Load():
		return c.drop(unregistered())
	}
	return nil
}

// admit finds the method of a call, or returns why it cannot run.
func (s *Server) admit(c *call) *rpcerror.Error {
	if s.stopping.Load() {
		return stopping(false)
	}
	a, e := s.find(c.in.GetActor())
	if e != nil {
		return e
	}
	c.actor = a
	if want := c.in.GetIncarnation(); want != "" && want != a.incarnation {
		return &rpcerror.Error{Code: rpcerror.CodeStale, Message: "another incarnation is here"}
	}
	m, e := a.find(c.in.GetMethod())
	if e != nil {
		return e
	}
	if e := c.takes.unwanted(m.method); e != nil {
		return e
	}
	switch codec := c.in.GetCodec(); codec {
	case wire.Codec_CODEC_UNSPECIFIED, wire.Codec_CODEC_MSGPACK, wire.Codec_CODEC_JSON:
	case wire.Codec_CODEC_PICKLE:
		return &rpcerror.Error{Code: rpcerror.CodeDenied, Message: "pickle is refused: this actor is written in Go; send msgpack"}
	default:
		return &rpcerror.Error{Code: rpcerror.CodeEncoding, Message: fmt.Sprintf("codec %d is unknown; send msgpack", codec)}
	}
	c.method = m
	return nil
}

// actor is the one of a name, nil without one.
func (s *Server) actor(name string) *actor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names.actors[name]
}

func (s *Server) find(name string) (*actor, *rpcerror.Error) {
	if a := s.actor(name); a != nil {
		return a, nil
	}
	e := &rpcerror.Error{Code: rpcerror.CodeUnknownActor, Message: fmt.Sprintf("no actor %q is here", clip(name, maxNameShown)), Actor: clip(name, maxNameShown)}
	s.mu.RLock()
	names := slices.Collect(maps.Keys(s.names.actors))
	s.mu.RUnlock()
	e.Suggestions = rpcerror.Suggest(name, names)
	return nil, e
}

// listMethods describes an actor.
func (s *Server) listMethods(name string) *wire.ListMethodsResponse {
	a, e := s.find(name)
	if e != nil {
		return &wire.ListMethodsResponse{Error: e.Wire()}
	}
	return &wire.ListMethodsResponse{Methods: a.list(), Incarnation: a.incarnation}
}

func busy(format string, args ...any) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeBusy, Message: fmt.Sprintf(format, args...) + "; try again later"}
}

// begun notes that a call waits no more.
func (s *Server) begun(c *call) { s.waiting.Add(-c.size()) }

// leave notes that a call was answered.
func (s *Server) leave() {
	if s.active.Add(-1) == 0 {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}
