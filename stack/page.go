package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/state/store"
)

// Page is where a controller that an apply started serves its web page: on this machine only, to clients that have the token.
type Page struct {
	Address string `json:"address"` // http://127.0.0.1:PORT/
	Token   string `json:"token"`
}

// URL opens the page in a browser: it has the token.
func (p Page) URL() string { return p.Address + "?token=" + url.QueryEscape(p.Token) }

// pageFile is the file of the page, which only the user of the stack may read.
func (s *Stack) pageFile() string { return filepath.Join(s.Root, "page.json") }

// WritePage records the page of the controller that is started next.
func (s *Stack) WritePage(p Page) error {
	text, err := json.Marshal(p)
	if err == nil {
		err = durable.WriteFile(s.pageFile(), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record the address of the web page: %w", err)
	}
	return nil
}

// ReadPage is the recorded page, the zero Page if there is none.
func (s *Stack) ReadPage() (Page, error) {
	text, err := os.ReadFile(s.pageFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Page{}, nil
	}
	var p Page
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return Page{}, fmt.Errorf("read the address of the web page in %s: %w", s.pageFile(), err)
	}
	return p, nil
}

// PageOf is the address of the page that the holder of a lease serves, with its token where this user may read it; "": it
// serves none.
func (s *Stack) PageOf(lease store.Lease) string {
	if p, err := s.ReadPage(); err == nil && p.Address != "" && p.Address == lease.ControllerHTTP {
		return p.URL()
	}
	if at, err := url.Parse(lease.ControllerHTTP); err == nil && net.ParseIP(at.Hostname()).IsLoopback() {
		if here, err := os.Hostname(); err != nil || here != lease.Host {
			return "" // it is there only
		}
	}
	return lease.ControllerHTTP
}
