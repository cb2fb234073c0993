package pgtest

import (
	"fmt"
	"io"
	"os/exec"
)

// guardScript reads the id of the process to end, if there is one, from each line of its input. Its input ends when the test
// process closes it or is gone, whatever ended it. It waits for a while and not for ever, because the entry of a process
// whose parent is gone may stay if nobody collects it. PostgreSQL leaves at once on SIGQUIT, and takes its children along.
const guardScript = `
trap '' HUP INT QUIT TERM
pid=0
while read -r line; do pid=$line; done
if [ "$pid" -ne 0 ] && kill -QUIT "$pid" 2>/dev/null; then
	tries=0
	while kill -0 "$pid" 2>/dev/null && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
fi
rm -rf "$1"
`

// guard outlives the test process, ends the server and removes its directory.
type guard struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

func newGuard(dir string, as *owner) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "pgtest-guard", dir)
	cmd.Dir = "/"
	as.prepare(cmd)
	// Of its own output it gets none of ours: go test waits until whoever has it is gone.
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &guard{cmd: cmd, input: input}, nil
}

// watch names the process that has to end; 0 for none.
func (g *guard) watch(pid int) error {
	_, err := fmt.Fprintln(g.input, pid)
	return err
}

// dismiss lets the guard do its work and waits for it.
func (g *guard) dismiss() error {
	g.input.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("pgtest: guard: %w", err)
	}
	return nil
}
