package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict string

const (
	caught   verdict = "caught"
	survived verdict = "SURVIVED"
	invalid  verdict = "ERROR" // nothing was learned: it does not apply or compile, or its tests are red without it
)

// attempt is a mutant with its verdict. note names the test that caught it, or says what is wrong.
type attempt struct {
	mutant
	verdict verdict
	note    string
	took    time.Duration
}

// lab tries mutants on the module at root. The tree is never changed: go builds with the mutated file in its place.
type lab struct {
	root    string
	timeout time.Duration    // of one test binary
	sound   map[tests]string // what is wrong with tests that were run without a mutant; "" if nothing is
}

// tests are those that a mutant has to make fail.
type tests struct{ in, run string }

func newLab(root string, timeout time.Duration) *lab {
	return &lab{root: root, timeout: timeout, sound: make(map[tests]string)}
}

// try runs the tests of a mutant, first without it unless that was done before.
func (l *lab) try(ctx context.Context, m mutant) attempt {
	start := time.Now()
	a := attempt{mutant: m}
	a.verdict, a.note = l.judge(ctx, m)
	if err := ctx.Err(); err != nil {
		a.verdict, a.note = invalid, err.Error()
	}
	a.took = time.Since(start)
	return a
}

func (l *lab) judge(ctx context.Context, m mutant) (verdict, string) {
	if wrong := l.check(ctx, tests{m.in, m.run}); wrong != "" {
		return invalid, wrong
	}
	text, err := m.apply(l.root)
	if err != nil {
		return invalid, err.Error()
	}
	result, err := l.mutated(ctx, m, text)
	switch {
	case err != nil:
		return invalid, err.Error()
	case result.broken != "":
		return invalid, "does not compile: " + result.broken
	case result.passed:
		return survived, "by " + m.run + " in " + m.in
	}
	return caught, result.failed
}

// check returns what is wrong with tests that no mutant is in; "" if nothing is.
func (l *lab) check(ctx context.Context, t tests) string {
	wrong, known := l.sound[t]
	if known {
		return wrong
	}
	result, err := l.test(ctx, t)
	switch {
	case err != nil:
		wrong = err.Error()
	case result.broken != "":
		wrong = "without the mutant it does not compile: " + result.broken
	case !result.passed:
		wrong = "without the mutant it fails, too: " + result.failed
	case result.ran == 0:
		wrong = "there is no test " + t.run + " in " + t.in
	}
	l.sound[t] = wrong
	return wrong
}

// mutated runs the tests with this text in the place of the mutant's file.
func (l *lab) mutated(ctx context.Context, m mutant, text string) (result, error) {
	dir, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	source, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(l.root, filepath.FromSlash(m.file)): source}})
	if err != nil {
		return result{}, err
	}
	err = errors.Join(os.WriteFile(source, []byte(text), 0o600), os.WriteFile(overlay, list, 0o600))
	if err != nil {
		return result{}, err
	}
	return l.test(ctx, tests{m.in, m.run}, "-overlay="+overlay)
}

// result is what a run of tests came to.
type result struct {
	passed bool
	ran    int
	failed string // the first test that failed, its innermost part; or what else ended the tests
	broken string // why they could not be built
}

func (l *lab) test(ctx context.Context, t tests, flags ...string) (result, error) {
	args := append([]string{"test", "-json", "-vet=off", "-timeout=" + l.timeout.String(), "-run=" + t.run}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, strings.Fields(t.in)...)...)
	cmd.Dir = l.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return result{}, err
	}
	r, parseErr := read(out, t.depth())
	if parseErr != nil {
		return result{}, fmt.Errorf("%w: %s", parseErr, stderr.String())
	}
	r.passed = err == nil
	if !r.passed && r.failed == "" && r.broken == "" {
		r.broken = firstLine(stderr.String())
	}
	return r, nil
}

// event is a line of go test -json, as far as it matters here.
type event struct {
	Action, Test, Output, FailedBuild string
}

// depth is how deep the tests are that the pattern is for: a part that is gone leaves the test that it was in.
func (t tests) depth() int {
	depth := math.MaxInt
	for alternative := range strings.SplitSeq(t.run, "|") {
		depth = min(depth, strings.Count(alternative, "/"))
	}
	return depth
}

// read makes a result of the events. Only tests of that depth count as run.
func read(out []byte, depth int) (result, error) {
	var r result
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return r, fmt.Errorf("go test said %q: %w", lines.Text(), err)
		}
		switch {
		case e.Action == "run" && strings.Count(e.Test, "/") >= depth:
			r.ran++
		case e.Action == "build-output" && r.broken == "" && !strings.HasPrefix(e.Output, "#"):
			r.broken = firstLine(e.Output)
		case e.Action == "fail" && e.FailedBuild == "":
			r.fail(e.Test)
		}
	}
	return r, lines.Err()
}

// fail notes the first test that failed, and of that the innermost part. A binary that ended outside of a test names none.
func (r *result) fail(test string) {
	switch {
	case r.failed == "" && test == "":
		r.failed = "the test binary"
	case r.failed == "" || strings.HasPrefix(test, r.failed+"/"):
		r.failed = test
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
