package decode

import (
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// Decoding is the work on one evaluated configuration: what its modules share.
type Decoding struct {
	session      *eval.Session
	Order        []*Decoder // parents before children, in key order
	Of           map[*eval.Evaluator]*Decoder
	Reservations map[schema.Address]*schema.Reservation // nil for one that is wrong
	projects     map[string]string                      // memo of project directories: what is wrong with each
	Implied      schema.ProviderName                    // where capacity comes from unless stated
	GCP          schema.Provider                        // the provider block of Google Cloud
}

// Decoder makes specs of the blocks of one instance of a module.
type Decoder struct {
	*eval.Evaluator
	Whole  *Decoding
	groups map[string]*schema.JobGroup // by name
}

// New begins to decode what a session has evaluated.
func New(s *eval.Session) *Decoding {
	w := &Decoding{
		session: s, Of: map[*eval.Evaluator]*Decoder{},
		Reservations: map[schema.Address]*schema.Reservation{}, projects: map[string]string{},
	}
	for _, e := range s.Order {
		d := &Decoder{Evaluator: e, Whole: w, groups: map[string]*schema.JobGroup{}}
		w.Of[e] = d
		w.Order = append(w.Order, d)
	}
	return w
}

// Root decodes the root module.
func (w *Decoding) Root() *Decoder { return w.Order[0] }
