// Mutationtest checks that the tests notice a missing safeguard. It switches off one safeguard at a
// time and runs the tests that must fail then.
//
//	go run ./internal/mutationtest                  try all mutants; exit code 1 if one survives
//	go run ./internal/mutationtest -run 'I16|lease' try the mutants whose invariant, id, file or description matches
//	go run ./internal/mutationtest -list            list the mutants
//	go run ./internal/mutationtest -gaps            try the mutants that no test catches yet
//
// A safeguard has a marker in the source: a comment that consists of "//mutate:" and an id, at the
// end of the first line of the statement or on a line of its own before it. A mutant names the id
// and an operator that changes the marked statement. So code can be moved and renamed without a
// change of the list. Migrations cannot have markers; their mutants name the file.
//
// The tree is not changed: go test builds with the mutated file in place of the original (-overlay,
// which also works for embedded files). If the tests fail without the mutant, or if the mutant does
// not compile, the result is an error. A unit test checks that every mutant applies to the tree.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutationtest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "select the mutants whose invariant, id, file or description matches this `regexp`")
	list := flags.Bool("list", false, "list the mutants and run nothing")
	open := flags.Bool("gaps", false, "use the mutants that no test catches yet instead of the others")
	timeout := flags.Duration("timeout", 3*time.Minute, "time limit for the tests of a mutant; a mutant that exceeds it is caught")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	source, picked, err := load(*pattern, *open)
	if err != nil {
		fmt.Fprintln(stderr, "mutationtest:", err)
		return 2
	}
	if *list {
		for _, m := range picked {
			fmt.Fprintf(stdout, "%-4s %-36s %s: %s\n", m.invariant, m.id, source.fileOf(m), m.without)
		}
		return 0
	}
	return tryAll(ctx, newRunner(source, *timeout), picked, stdout)
}

// load scans the working directory, which must be the root of the module, and selects mutants.
func load(pattern string, open bool) (*tree, []mutant, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, nil, fmt.Errorf("run it in the root of the module: %w", err)
	}
	source, err := scan(root)
	if err != nil {
		return nil, nil, err
	}
	list := mutants()
	if open {
		list = uncaught()
	}
	picked, err := pick(source, list, pattern)
	return source, picked, err
}

// pick selects the mutants that match a pattern.
func pick(source *tree, list []mutant, pattern string) ([]mutant, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	picked := slices.DeleteFunc(slices.Clone(list), func(m mutant) bool {
		return !re.MatchString(m.name()) && !re.MatchString(source.fileOf(m))
	})
	if len(picked) == 0 {
		return nil, fmt.Errorf("no mutant matches %q", pattern)
	}
	return picked, nil
}

// tryAll tries one mutant after the other and returns the exit code.
func tryAll(ctx context.Context, r *runner, picked []mutant, stdout io.Writer) int {
	start := time.Now()
	count := make(map[verdict]int)
	for n, m := range picked {
		a := r.try(ctx, m)
		count[a.verdict]++
		fmt.Fprintf(stdout, "%3d/%d  %-8s %5.1fs  %-4s %s: %s\n%25s%s\n",
			n+1, len(picked), a.verdict, a.took.Seconds(), a.invariant, a.id, a.without, "", a.note)
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Fprintf(stdout, "%d mutants: %d caught, %d survived, %d errors, in %s\n",
		len(picked), count[caught], count[survived], count[invalid], time.Since(start).Round(time.Second))
	if count[caught] < len(picked) {
		return 1
	}
	return 0
}
