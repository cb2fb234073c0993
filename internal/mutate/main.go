// Mutate proves that the tests would notice if a safeguard were missing: it switches one off at a time and runs the tests that must
// catch that.
//
//	go run ./internal/mutate                  all mutants; exit code 1 if one survives
//	go run ./internal/mutate -run 'I16|book'  those whose invariant, file or words match
//	go run ./internal/mutate -list            what there is
//	go run ./internal/mutate -gaps            what no test catches yet
//
// A mutant is a few bytes of one file. The tree is not touched: go test builds with the mutated file in the place of the real one
// (-overlay, which reaches embedded files, too). Tests that are red without the mutant, and mutants that do not compile, prove
// nothing and are errors. A unit test sees to it that each mutant still applies to the tree, so a safeguard that moves takes
// its mutant along.
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
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "only mutants whose invariant, file or words match this `regexp`")
	list := flags.Bool("list", false, "list the mutants, and run nothing")
	open := flags.Bool("gaps", false, "the mutants that no test catches yet, instead of the others")
	timeout := flags.Duration("timeout", 3*time.Minute, "how long the tests of a mutant may take; the rest is taken for caught")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	root, err := moduleRoot()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	all := mutants()
	if *open {
		all = uncaught()
	}
	picked, err := pick(all, *pattern)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	if *list {
		for _, m := range picked {
			fmt.Fprintf(stdout, "%-4s %-30s %s\n", m.invariant, m.file, m.off)
		}
		return 0
	}
	return tryAll(ctx, newLab(root, *timeout), picked, stdout)
}

// moduleRoot is the working directory, where the paths of the mutants begin.
func moduleRoot() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return "", fmt.Errorf("mutate: run it at the root of the module: %w", err)
	}
	return root, nil
}

func pick(all []mutant, pattern string) ([]mutant, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("mutate: -run: %w", err)
	}
	picked := slices.DeleteFunc(all, func(m mutant) bool { return !re.MatchString(m.name()) })
	if len(picked) == 0 {
		return nil, fmt.Errorf("mutate: no mutant matches %q", pattern)
	}
	return picked, nil
}

// tryAll tries one mutant after the other, and returns the exit code.
func tryAll(ctx context.Context, l *lab, picked []mutant, stdout io.Writer) int {
	start := time.Now()
	count := make(map[verdict]int)
	for n, m := range picked {
		a := l.try(ctx, m)
		count[a.verdict]++
		fmt.Fprintf(stdout, "%3d/%d  %-8s %5.1fs  %-4s %s: %s\n%25s%s\n",
			n+1, len(picked), a.verdict, a.took.Seconds(), a.invariant, a.file, a.off, "", a.note)
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
