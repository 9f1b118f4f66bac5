package actorrpc

import (
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/internal/tasks"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// shared is what all transports of a client have in common.
type shared struct {
	config Config // complete
	tasks  *tasks.Group
	dial   dialFunc
	room   *wire.Memory // for results that come in parts
	shapes *codec.Shapes
}
