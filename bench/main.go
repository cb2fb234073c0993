package main

import (
	"context"
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

// config is the command line.
type config struct {
	rounds     int
	scenario   *regexp.Regexp
	json       bool
	quick      bool
	cpuProfile string
	parked     int
	talking    int
}

func main() {
	if isChild() {
		return
	}
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
	var c config
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&c.rounds, "rounds", 15, "number of rounds in which the two sides alternate")
	flags.BoolVar(&c.json, "json", false, "write JSON instead of Markdown")
	flags.BoolVar(&c.quick, "quick", false, "run one operation of everything as a correctness check; only sizes have goals")
	flags.IntVar(&c.parked, "parked", 0, "also measure an executor with this many waiting runs; a million takes minutes and gigabytes")
	flags.IntVar(&c.talking, "conversations", talkFull.conversations, "number of open conversations in the scenarios dialog/…")
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
	if c.parked != 0 && (c.parked < parkedFull.few || c.parked > maxParked) {
		return c, fmt.Errorf("-parked must be between %d and %d", parkedFull.few, maxParked)
	}
	if c.talking <= talkFull.single || c.talking > maxParked {
		return c, fmt.Errorf("-conversations must be between %d and %d", talkFull.single+1, maxParked)
	}
	var err error
	c.scenario, err = regexp.Compile(*scenario)
	return c, err
}

// families are the kinds of scenarios, in the order of the report. Each measures those of its
// scenarios that the command line selects.
var families = []func(context.Context, config, *recorder) error{
	measureEngines, measureHold, measureWeb, measureParked, measureRecovery, measureInbox, measureTalk,
}

// recorder takes the metrics and versions of all families, and shows progress.
type recorder struct {
	report
	progress io.Writer
}

func (r *recorder) printf(text string, values ...any) { fmt.Fprintf(r.progress, text+"\n", values...) }

func (r *recorder) add(s *scenarioMetrics) { r.Metrics = append(r.Metrics, s.list...) }

// version notes the version of a database or peer.
func (r *recorder) version(text string) {
	if !slices.Contains(r.Machine.Other, text) {
		r.Machine.Other = append(r.Machine.Other, text)
	}
}

// run measures and writes the report to out, and its progress to progress.
func run(ctx context.Context, c config, out, progress io.Writer) (err error) {
	if c.cpuProfile != "" {
		stop, failed := profile(c.cpuProfile)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	r := &recorder{report: report{Machine: describe(time.Now()), Rounds: c.rounds}, progress: progress}
	if c.quick {
		r.Rounds = 1
	}
	for _, measure := range families {
		if err := measure(ctx, c, r); err != nil {
			return err
		}
	}
	if len(r.Metrics) == 0 {
		return fmt.Errorf("no scenario matches %s, or it is parked/… and needs -parked", c.scenario)
	}
	if c.quick {
		for i := range r.Metrics {
			if m := &r.Metrics[i]; m.Unit != unitBytes {
				m.AtLeast, m.AtMost = 0, 0
			}
		}
	}
	if c.json {
		return r.json(out)
	}
	return r.markdown(out)
}

// selected returns the scenarios that the command line selects.
func selected[S any](c config, all []S, name func(S) string) []S {
	return slices.DeleteFunc(all, func(s S) bool { return !c.scenario.MatchString(name(s)) })
}

// onSelected measures the scenarios of a family that has one for each database.
func (c config) onSelected(family string, measure func(database, name string) error) error {
	for _, database := range []string{onSQLite, onPostgres} {
		name := family + "/" + database
		if !c.scenario.MatchString(name) {
			continue
		}
		if err := measure(database, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
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
