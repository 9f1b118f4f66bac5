// Command burns uses the processor and memory, and serves its profiles: at fray's socket, or at the port pprof.
package main

import (
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"time"

	"github.com/fray-ml/fray/profile/profileserver"
)

//go:noinline
func burnCycles() (sum int) {
	for i := range 10_000_000 {
		sum += i * i
	}
	return sum
}

func main() {
	kept := make([]byte, 32<<20)
	if len(os.Args) > 1 {
		go func() {
			panic(http.ListenAndServe(net.JoinHostPort(os.Getenv("FRAY_HOST_ADDRESS"), os.Getenv("FRAY_PORT_PPROF")), nil))
		}()
	} else if _, err := profileserver.Start(); err != nil {
		panic(err)
	}
	for {
		kept[0] = byte(burnCycles())
		time.Sleep(time.Millisecond)
	}
}
