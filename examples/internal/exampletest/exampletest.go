// Package exampletest tests the agent examples as real processes, with a real SQLite file: from
// start to end, and with the process killed at every critical point.
//
//	func TestMain(m *testing.M) { exampletest.Main(m, "ticket", run) }
//
// The process is the test binary itself, started again: [Main] runs the example in it.
package exampletest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/sqlite"
)

// Run is the function run of an example.
type Run func(ctx context.Context, dir string, runs store.Checkpoints, in io.Reader, out io.Writer) error

// envKill makes a test binary run the example. It says when to kill it: "before 3" is before the
// third save, "after 3" after it; "never" does not kill it.
const envKill = "FERMATA_EXAMPLE_KILL"

// Main runs the tests, or the example if a test started the process.
func Main(m *testing.M, name string, run Run) {
	kill := os.Getenv(envKill)
	if kill == "" {
		os.Exit(m.Run())
	}
	runs, err := sqlite.Open(name + ".db")
	if err == nil {
		k := &killer{Checkpoints: runs}
		_, _ = fmt.Sscanf(kill, "%s %d", &k.when, &k.at) // "never" has no number
		err = run(context.Background(), ".", k, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// killer is a store that kills its process at a save, like kill -9: deferred calls do not run.
type killer struct {
	store.Checkpoints
	when  string
	at    int64
	saves atomic.Int64
}

func (k *killer) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	now := k.saves.Add(1) == k.at
	if now && k.when == "before" {
		die()
	}
	version, err := k.Checkpoints.Save(ctx, key, base, delta)
	if now && err == nil {
		die()
	}
	return version, err
}

func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// Program is a running example.
type Program struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer // complete when the program has ended
}

// Start starts the example in a directory, where it also stores its data.
func Start(t testing.TB, dir string) *Program { return start(t, dir, "never") }

func start(t testing.TB, dir, kill string) *Program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p := &Program{t: t, cmd: exec.CommandContext(ctx, os.Args[0])}
	p.cmd.Dir = dir
	// Without keys, the model is the script. The race detector would delay the end by a second.
	p.cmd.Env = append(os.Environ(), envKill+"="+kill, "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=", "GORACE=atexit_sleep_ms=0")
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
			t.Logf("standard error: %s", p.err.String())
		}
	})
	return p
}

const prompt = "> "

// Read reads up to and including the next prompt. At the end of the program it returns the rest,
// and false.
func (p *Program) Read() (text string, prompted bool) {
	p.t.Helper()
	var read strings.Builder
	for !strings.HasSuffix(read.String(), prompt) { // a prompt has no newline
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

// Say types a line.
func (p *Program) Say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Dialogue types all lines, ends the input, and returns the output and the exit code, -1 if the
// process was killed.
func (p *Program) Dialogue(lines ...string) (string, int) {
	p.t.Helper()
	_, _ = io.WriteString(p.in, strings.Join(append(lines, ""), "\n")) // it may end before it reads all
	p.in.Close()
	rest, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // the exit code is sufficient
	return string(rest), p.cmd.ProcessState.ExitCode()
}

// Kill kills the program like kill -9.
func (p *Program) Kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.Dialogue()
}

// Files counts the files in a directory, for effects that write one file each.
func Files(t testing.TB, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
