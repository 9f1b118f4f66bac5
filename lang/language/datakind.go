package language

// DataKind is a closed set of what data blocks read.
type DataKind string

// The kinds of data.
const (
	DataOutputs      DataKind = "outputs"
	DataReservation  DataKind = "reservation"
	DataAccelerators DataKind = "accelerators"
)
