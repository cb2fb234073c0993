package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/sqlite"
)

// binary is the program, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "contentreview")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "contentreview.exe")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// patience is when a silent program counts as stuck.
const patience = time.Minute

const prompt = "Your answer (a, r or x) > "

// program is a running program, with pipes as its terminal.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	p := &program{t: t, cmd: exec.CommandContext(ctx, binary, append([]string{"-data", dir}, args...)...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // it must end before its directory is removed
		cancel()
		_ = p.cmd.Wait()
	})
	return p
}

// until reads up to and including the text. A prompt has no newline, so this reads byte by byte.
func (p *program) until(text string) string {
	p.t.Helper()
	var read strings.Builder
	for !strings.HasSuffix(read.String(), text) {
		b, err := p.out.ReadByte()
		if err != nil {
			p.t.Fatalf("the program ended without %q; its output:\n%s", text, read.String())
		}
		read.WriteByte(b)
	}
	return read.String()
}

func (p *program) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the program and returns the rest of its output and its exit code.
func (p *program) end() (string, int) {
	p.t.Helper()
	rest, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // the exit code is sufficient
	return string(rest), p.cmd.ProcessState.ExitCode()
}

// saved reads the file that the program left.
func saved(t *testing.T, dir, run string) *graph.Snapshot[State] {
	t.Helper()
	kept, err := sqlite.Open(filepath.Join(dir, "contentreview.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	flow, err := New()
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := flow.Inspect(t.Context(), run, graph.WithStore(kept))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// published returns the file that an approval writes, "" if there is none.
func published(t *testing.T, dir, run string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "published", run+".md"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
