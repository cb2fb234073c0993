// Package testserver has what the servers that tests start have in common (internal/pgtest, internal/redistest): a guard that ends them
// however the tests end, and a port of their own.
package testserver

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"
)

// StartTimeout is how long a server may take to start or to stop. Both take a fraction of a second unless the machine is overloaded.
const StartTimeout = time.Minute

// guardScript reads the id of the process to end, if there is one, from each line of its input. Its input ends when the test
// process closes it or is gone, whatever ended it. It waits for a while and not for ever, because the entry of a process
// whose parent is gone may stay if nobody collects it.
const guardScript = `
trap '' HUP INT QUIT TERM
pid=0
while read -r line; do pid=$line; done
if [ "$pid" -ne 0 ] && kill -"$1" "$pid" 2>/dev/null; then
	tries=0
	while kill -0 "$pid" 2>/dev/null && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
fi
if [ -n "$2" ]; then rm -rf "$2"; fi
`

// Guard is a process that outlives the test process, ends the server that it watches and removes its directory.
type Guard struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// NewGuard starts a guard that ends a server with a signal, by its name without SIG. dir is removed, unless it is "". prepare, if it is not nil, may
// change as whom the guard runs.
func NewGuard(signal, dir string, prepare func(*exec.Cmd)) (*Guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "testserver-guard", signal, dir)
	cmd.Dir = "/"
	if prepare != nil {
		prepare(cmd)
	}
	// Of its own output it gets none of ours: go test waits until whoever has it is gone.
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &Guard{cmd: cmd, input: input}, nil
}

// Watch names the process that has to end; 0 for none.
func (g *Guard) Watch(pid int) error {
	if _, err := fmt.Fprintln(g.input, pid); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// Dismiss lets the guard do its work and waits for it.
func (g *Guard) Dismiss() error {
	g.input.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// Run starts a server with try, and again if that gives up before the deadline: somebody else may have taken the port. A port that is 0 is
// chosen anew each time; one that is there is kept, so that addresses stay good.
func Run(port *int, try func(deadline time.Time) error) error {
	fixed := *port != 0
	deadline := time.Now().Add(StartTimeout)
	for {
		if !fixed {
			var err error
			if *port, err = freePort(); err != nil {
				return err
			}
		}
		err := try(deadline)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
