// Package consoletest runs the scenario of an example in real processes, with a real SQLite file:
// to its end, and with the process killed at every critical point.
//
//	func TestMain(m *testing.M) { consoletest.Main(m, example) }
//
//	func TestTicket(t *testing.T) { consoletest.Test(t, scenario) }
//
// The program under test is the test binary itself, started again: [Main] runs the example in it.
package consoletest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/examples/console"
)

// Environment variables for the child process.
const (
	envChild = "FERMATA_EXAMPLE"      // run the example
	envKill  = "FERMATA_EXAMPLE_KILL" // when to exit
)

// Main runs the tests, or the example if a test started the process.
func Main(m *testing.M, e console.Example) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	os.Exit(console.Run(e, os.Args[1:], os.Stdin, os.Stdout, testHooks(os.Getenv(envKill))))
}

// timeout is when a silent program counts as stuck.
const timeout = time.Minute

// Program is a running example, with pipes as its terminal.
type Program struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer // complete when the program has ended
}

// Start starts the example in a directory. Its data is in .demo there, as usual.
func Start(t testing.TB, dir string, args ...string) *Program { return start(t, dir, "", args...) }

func start(t testing.TB, dir, kill string, args ...string) *Program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	p := &Program{t: t, cmd: exec.CommandContext(ctx, os.Args[0], append([]string{"-by", "ann"}, args...)...)}
	p.cmd.Dir = dir
	// The race detector would make each process sleep for a second before it ends.
	p.cmd.Env = append(withoutKeys(os.Environ()), envChild+"=1", envKill+"="+kill, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // it must end before its directory is removed
		cancel()
		_ = p.cmd.Wait()
		if t.Failed() && p.err.Len() > 0 {
			t.Logf("on standard error: %s", p.err.String())
		}
	})
	return p
}

// withoutKeys keeps a test from calling a real model.
func withoutKeys(environment []string) []string {
	var kept []string
	for _, variable := range environment {
		if name, _, _ := strings.Cut(variable, "="); !strings.HasSuffix(name, "_API_KEY") {
			kept = append(kept, variable)
		}
	}
	return kept
}

const promptMark = "❯ "

// Read reads up to and including the next prompt. At the end of the program it returns the rest,
// and false.
func (p *Program) Read() (text string, prompted bool) {
	p.t.Helper()
	var read strings.Builder
	for !strings.HasSuffix(read.String(), promptMark) { // a prompt has no newline
		b, err := p.out.ReadByte()
		if err == io.EOF {
			return read.String(), false
		}
		if err != nil {
			p.t.Fatal(err)
		}
		read.WriteByte(b)
	}
	return read.String(), true
}

// Question is Read for a program that must ask.
func (p *Program) Question() string {
	p.t.Helper()
	text, prompted := p.Read()
	if !prompted {
		p.t.Fatalf("the program ended without a question; its output:\n%s", text)
	}
	return text
}

// Say types lines, one at each prompt. The first prompt has been read.
func (p *Program) Say(lines ...string) {
	p.t.Helper()
	for i, line := range lines {
		if i > 0 {
			p.Question()
		}
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Pipe types all lines at once and ends the input.
func (p *Program) Pipe(lines ...string) {
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			break // it does not read any more
		}
	}
	p.in.Close()
}

// Kill kills the program like kill -9.
func (p *Program) Kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.End()
}

// Interrupt is Ctrl-C.
func (p *Program) Interrupt() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
}

// End waits for the program, and returns the rest of its output and its exit code; -1 if it was
// killed.
func (p *Program) End() (string, int) {
	p.t.Helper()
	rest, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // the exit code is sufficient
	return string(rest), p.cmd.ProcessState.ExitCode()
}

// Errors returns the standard error output. Call it after End.
func (p *Program) Errors() string { return p.err.String() }

// Data returns the data directory of a program started in dir.
func Data(dir string) string { return filepath.Join(dir, ".demo") }
