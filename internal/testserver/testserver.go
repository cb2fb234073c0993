// Package testserver contains code shared by tests that start programs: a guard process that stops
// a server however the tests end, the choice of a port, and the program fermata.
package testserver

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"
)

// StartTimeout is the time in which a server must start or stop. Both take a fraction of a second
// unless the machine is overloaded.
const StartTimeout = time.Minute

// guardScript reads the id of the process to stop, if any, from each line of its input. The input
// ends when the test process closes it or ends. The script waits a limited time, because the entry
// of a process without a parent may stay.
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

// Guard is a process that outlives the test process, stops the server that it watches and removes
// its directory.
type Guard struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// NewGuard starts a guard that stops a server with a signal, given without SIG. It removes dir
// unless that is "". prepare, if not nil, may change the user of the guard.
func NewGuard(signal, dir string, prepare func(*exec.Cmd)) (*Guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "testserver-guard", signal, dir)
	cmd.Dir = "/"
	if prepare != nil {
		prepare(cmd)
	}
	// The guard must not inherit the output: go test waits until it is closed.
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &Guard{cmd: cmd, input: input}, nil
}

// Watch sets the process to stop; 0 for none.
func (g *Guard) Watch(pid int) error {
	if _, err := fmt.Fprintln(g.input, pid); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// Dismiss stops the guarded process and waits for the guard to end.
func (g *Guard) Dismiss() error {
	g.input.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// Run starts a server with try, and retries until the deadline, because another process may have
// taken the port. If port is 0, each attempt chooses a new one; otherwise the port is kept.
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
