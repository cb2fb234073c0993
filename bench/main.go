package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"slices"
	"time"
)

// config is what the command line says.
type config struct {
	rounds     int
	scenario   *regexp.Regexp
	json       bool
	quick      bool
	cpuProfile string
}

// stretch is long enough for the garbage collector to run many times within it.
const stretch = 100 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, c, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (config, error) {
	c := config{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&c.rounds, "rounds", 15, "how often the two sides take turns")
	flags.BoolVar(&c.json, "json", false, "write JSON, with every round, instead of Markdown")
	flags.BoolVar(&c.quick, "quick", false, "one operation of everything: is it right? Its times mean nothing")
	flags.StringVar(&c.cpuProfile, "cpuprofile", "", "write a CPU profile to this `file`; samples carry the labels side and scenario")
	scenario := flags.String("scenario", "", "measure only the scenarios whose name matches this `regexp`")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if c.rounds < 1 {
		return c, errors.New("-rounds must be at least 1")
	}
	var err error
	c.scenario, err = regexp.Compile(*scenario)
	return c, err
}

// run measures and writes the report to out, and what it is doing to progress.
func run(ctx context.Context, c config, out, progress io.Writer) (err error) {
	if c.cpuProfile != "" {
		stop, failed := profile(c.cpuProfile)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	p := plan{rounds: c.rounds, stretch: stretch}
	if c.quick {
		p = plan{rounds: 1}
	}
	r := &report{Machine: describe(time.Now()), Rounds: p.rounds}
	chosen := slices.DeleteFunc(scenarios(), func(s scenario) bool { return !c.scenario.MatchString(s.name) })
	for i := range chosen {
		if c.quick && chosen[i].bulky {
			chosen[i].eino = nil
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no scenario is called %s", c.scenario)
	}
	r.Results, err = p.measure(ctx, chosen, func(round int, scenario string) {
		fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, p.rounds, scenario)
	})
	if err != nil {
		return err
	}
	r.Goals = judge(r.Results, c.quick)
	if c.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.markdown(out)
}

func profile(name string) (stop func() error, err error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
