package redistest

import (
	"fmt"
	"io"
	"os/exec"
)

// guardScript reads the id of the process to end, if there is one, from each line of its input. Its input ends when the test
// process closes it or is gone, whatever ended it.
const guardScript = `
trap '' HUP INT QUIT TERM
pid=0
while read -r line; do pid=$line; done
if [ "$pid" -ne 0 ]; then kill -KILL "$pid" 2>/dev/null; fi
exit 0
`

// guard outlives the test process and ends the server.
type guard struct {
	process *exec.Cmd
	input   io.WriteCloser
}

func newGuard() (*guard, error) {
	process := exec.Command("/bin/sh", "-c", guardScript, "redistest-guard")
	process.Dir = "/"
	// Of its own output it gets none of ours: go test waits until whoever has it is gone.
	input, err := process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("redistest: guard: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("redistest: guard: %w", err)
	}
	return &guard{process: process, input: input}, nil
}

// watch names the process that has to end; 0 for none.
func (g *guard) watch(pid int) error {
	if _, err := fmt.Fprintln(g.input, pid); err != nil {
		return fmt.Errorf("redistest: guard: %w", err)
	}
	return nil
}

// dismiss lets the guard do its work and waits for it.
func (g *guard) dismiss() error {
	g.input.Close()
	if err := g.process.Wait(); err != nil {
		return fmt.Errorf("redistest: guard: %w", err)
	}
	return nil
}
