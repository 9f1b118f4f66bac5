package watch

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/fray-ml/fray/stack"
)

// PageDescriptor is the file descriptor at which a controller that an apply starts finds the listener of its page.
const PageDescriptor = 3

// inheritedPage is the listener of the page, and the token that its clients must have.
func inheritedPage(s *stack.Stack) (net.Listener, string, error) {
	file := os.NewFile(PageDescriptor, "page")
	if file == nil {
		return nil, "", errors.New("serve the web page: its listener was not passed on; omit --page")
	}
	listener, err := net.FileListener(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, "", fmt.Errorf("serve the web page at the listener that was passed on: %w", err)
	}
	page, err := s.ReadPage()
	if err == nil && (page.Token == "" || page.Address != "http://"+listener.Addr().String()+"/") {
		err = errors.New("serve the web page: another apply has recorded the page of another controller")
	}
	if err != nil {
		return nil, "", errors.Join(err, listener.Close())
	}
	return listener, page.Token, nil
}
