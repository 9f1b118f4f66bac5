package host

import "github.com/fray-ml/fray/actorrpc/wire"

// answerer takes the reply to a call to its caller. One that is in no hurry to
// go on says so: then its own goroutine may write.
type answerer interface {
	answer(reply *wire.Reply, buffers [][]byte, unhurried bool)
}

// answer is a reply, and what it refers to out of band.
type answer struct {
	reply   *wire.Reply
	buffers [][]byte
}
