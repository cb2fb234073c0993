package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// langGraph is LangGraph JS in its own Node process; langgraph/pieces.mjs documents the protocol.
type langGraph struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  *bytes.Buffer
	version string
}

// langGraphOrder is one line to the process, and langGraphReply one from it.
type langGraphOrder struct {
	Saver     string    `json:"saver,omitempty"`
	Place     string    `json:"place,omitempty"`
	Piece     string    `json:"piece,omitempty"`
	Text      string    `json:"text,omitempty"`
	Operation operation `json:"act,omitempty"`
	Callers   int       `json:"callers,omitempty"`
	Millis    int64     `json:"millis,omitempty"`
	Least     int       `json:"least,omitempty"`
}

type langGraphReply struct {
	LangGraph string  `json:"langgraph"`
	Wall      int64   `json:"wall"`
	CPU       int64   `json:"cpu"`
	Micros    []int64 `json:"micros"`
}

// langGraphDir is the directory of package.json: the program and its tests run in bench.
const langGraphDir = "langgraph"

// langGraphInstalled reports whether the packages of the lock file are installed, according to
// npm's record.
func langGraphInstalled() bool {
	lock, err := os.Stat(filepath.Join(langGraphDir, "package-lock.json"))
	if err != nil {
		return false
	}
	installed, err := os.Stat(filepath.Join(langGraphDir, "node_modules", ".package-lock.json"))
	return err == nil && !installed.ModTime().Before(lock.ModTime())
}

// installLangGraph installs the packages of the lock file with npm, unless they are installed.
// There is no way to continue without them: a missing comparison must not look like one.
func installLangGraph(ctx context.Context, progress io.Writer) error {
	if langGraphInstalled() {
		return nil
	}
	fmt.Fprintln(progress, "npm ci in bench/langgraph")
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir, cmd.Stdout, cmd.Stderr = langGraphDir, progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("LangGraph could not be installed (it needs Node 20, npm and the registry; exclude hold/… with -scenario): %w", err)
	}
	return nil
}

func newLangGraph(ctx context.Context, saver, place string, p workload) (_ *langGraph, err error) {
	l := &langGraph{cmd: exec.CommandContext(ctx, "node", "pieces.mjs"), stderr: new(bytes.Buffer)}
	l.cmd.Dir, l.cmd.Stderr = langGraphDir, l.stderr
	l.cmd.Env = append(os.Environ(), "NODE_ENV=production", "LANGSMITH_TRACING=false", "LANGCHAIN_TRACING_V2=false")
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.out = bufio.NewReader(out)
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	reply, err := l.ask(langGraphOrder{Saver: saver, Place: place, Piece: p.name, Text: p.text})
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.version = reply.LangGraph
	return l, nil
}

func (l *langGraph) ask(order langGraphOrder) (reply langGraphReply, err error) {
	line, err := json.Marshal(order)
	if err != nil {
		return reply, err
	}
	if _, err := l.in.Write(append(line, '\n')); err != nil {
		return reply, l.failed(err)
	}
	if line, err = l.out.ReadBytes('\n'); err != nil {
		return reply, l.failed(err)
	}
	return reply, json.Unmarshal(line, &reply)
}

// failed adds the process's standard error.
func (l *langGraph) failed(err error) error {
	l.in.Close()
	return fmt.Errorf("LangGraph: %w, %w\n%s", err, l.cmd.Wait(), l.stderr)
}

func (l *langGraph) perform(order langGraphOrder) (measuredLoad, error) {
	reply, err := l.ask(order)
	if err != nil {
		return measuredLoad{}, err
	}
	done := measuredLoad{wall: time.Duration(reply.Wall), cpu: time.Duration(reply.CPU)}
	for _, micros := range reply.Micros {
		done.latencies = append(done.latencies, time.Duration(micros)*time.Microsecond)
	}
	return done, nil
}

func (l *langGraph) starts(_ context.Context, callers int, spec loadSpec) (measuredLoad, error) {
	return l.perform(langGraphOrder{Operation: opStart, Callers: callers, Millis: spec.duration.Milliseconds(), Least: spec.minRuns})
}

func (l *langGraph) decides(_ context.Context, callers int) (measuredLoad, error) {
	return l.perform(langGraphOrder{Operation: opDecide, Callers: callers})
}

func (l *langGraph) close() error {
	if l.cmd.ProcessState != nil {
		return nil
	}
	l.in.Close()
	if err := l.cmd.Wait(); err != nil {
		return fmt.Errorf("LangGraph: %w\n%s", err, l.stderr)
	}
	return nil
}
