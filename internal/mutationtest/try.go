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

// verdict is the result of trying a mutant.
type verdict string

const (
	caught   verdict = "caught"
	survived verdict = "SURVIVED"
	invalid  verdict = "ERROR" // the mutant does not apply or compile, or its tests fail without it
)

// attempt is a mutant with its verdict. note names the test that caught it, or the problem.
type attempt struct {
	mutant
	verdict verdict
	note    string
	took    time.Duration
}

// runner tries mutants. It never changes the tree: go test builds with the mutated files in place
// of the originals.
type runner struct {
	source  *tree
	timeout time.Duration    // of one test binary
	checked map[tests]string // the problem of tests that ran without a mutant; "" if they passed
}

// tests are the tests that must fail with a mutant.
type tests struct{ in, run string }

func newRunner(source *tree, timeout time.Duration) *runner {
	return &runner{source: source, timeout: timeout, checked: make(map[tests]string)}
}

// try runs the tests of a mutant. Before that it runs the same tests without the mutant, once.
func (r *runner) try(ctx context.Context, m mutant) attempt {
	start := time.Now()
	a := attempt{mutant: m}
	a.verdict, a.note = r.judge(ctx, m)
	if err := ctx.Err(); err != nil {
		a.verdict, a.note = invalid, err.Error()
	}
	a.took = time.Since(start)
	return a
}

func (r *runner) judge(ctx context.Context, m mutant) (verdict, string) {
	if problem := r.check(ctx, tests{m.in, m.run}); problem != "" {
		return invalid, problem
	}
	files, err := m.apply(r.source)
	if err != nil {
		return invalid, err.Error()
	}
	result, err := r.mutated(ctx, tests{m.in, m.run}, files)
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

// check returns the problem of tests that run without a mutant; "" if they pass.
func (r *runner) check(ctx context.Context, t tests) string {
	problem, known := r.checked[t]
	if known {
		return problem
	}
	result, err := r.test(ctx, t)
	switch {
	case err != nil:
		problem = err.Error()
	case result.broken != "":
		problem = "does not compile without the mutant: " + result.broken
	case !result.passed:
		problem = "fails without the mutant: " + result.failed
	case result.ran == 0:
		problem = "there is no test " + t.run + " in " + t.in
	}
	r.checked[t] = problem
	return problem
}

// mutated runs tests with the mutated files, given by path.
func (r *runner) mutated(ctx context.Context, t tests, files map[string]string) (result, error) {
	dir, err := os.MkdirTemp("", "mutationtest-*")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	replace := make(map[string]string)
	for path, text := range files {
		mutated := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		replace[filepath.Join(r.source.root, filepath.FromSlash(path))] = mutated
		if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
			return result{}, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return result{}, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return result{}, err
	}
	return r.test(ctx, t, "-overlay="+overlay)
}

// result is the result of a run of tests.
type result struct {
	passed bool
	ran    int
	failed string // the innermost part of the first test that failed, or what else ended the tests
	broken string // why the tests could not be built
}

func (r *runner) test(ctx context.Context, t tests, flags ...string) (result, error) {
	args := append([]string{"test", "-json", "-vet=off", "-timeout=" + r.timeout.String(), "-run=" + t.run}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, strings.Fields(t.in)...)...)
	cmd.Dir = r.source.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return result{}, err
	}
	res, parseErr := read(out, t.depth())
	if parseErr != nil {
		return result{}, fmt.Errorf("%w: %s", parseErr, stderr.String())
	}
	res.passed = err == nil
	if !res.passed && res.failed == "" && res.broken == "" {
		res.broken = firstLine(stderr.String())
	}
	return res, nil
}

// event is a line of the output of go test -json.
type event struct {
	Action, Test, Output, FailedBuild string
}

// depth returns the nesting level of the tests that the pattern selects. If a subtest no longer
// exists, its parent still runs, but does not count.
func (t tests) depth() int {
	depth := math.MaxInt
	for alternative := range strings.SplitSeq(t.run, "|") {
		depth = min(depth, strings.Count(alternative, "/"))
	}
	return depth
}

// read builds a result from the events. Only tests of at least this depth count as run.
func read(out []byte, depth int) (result, error) {
	var r result
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return r, fmt.Errorf("output of go test %q: %w", lines.Text(), err)
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

// fail records the first test that failed, and of that test the innermost part. If the binary ended
// outside of a test, test is empty.
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
