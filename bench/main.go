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

// config is the command line.
type config struct {
	rounds     int
	scenario   *regexp.Regexp
	json       bool
	quick      bool
	cpuProfile string
	parked     int
	decided    int
	talking    int
}

// stretch is long enough for many garbage collections.
const stretch = 100 * time.Millisecond

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
	flags.BoolVar(&c.json, "json", false, "write JSON, with every round, instead of Markdown")
	flags.BoolVar(&c.quick, "quick", false, "run one operation of everything as a correctness check; its times are not judged")
	flags.IntVar(&c.parked, "parked", 0, "also measure an executor with this many waiting runs; a million takes minutes and gigabytes")
	flags.IntVar(&c.decided, "decided", 0, "also measure a report over this many decisions; a million takes minutes and gigabytes")
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
	if c.decided != 0 && (c.decided < minDecided || c.decided > maxParked) {
		return c, fmt.Errorf("-decided must be between %d and %d", minDecided, maxParked)
	}
	if c.talking <= talkFull.single || c.talking > maxParked {
		return c, fmt.Errorf("-conversations must be between %d and %d", talkFull.single+1, maxParked)
	}
	var err error
	c.scenario, err = regexp.Compile(*scenario)
	return c, err
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
	r := &report{Machine: describe(time.Now()), Rounds: c.rounds}
	if err := c.measure(ctx, r, progress); err != nil {
		return err
	}
	r.Goals = slices.Concat(judge(r.Results, c.quick), r.Hold.judge(c.quick), r.Web.judge(c.quick), r.Desk.judge(c.quick), judgeParked(r.Parked, c.quick), judgeRecovery(r.Recovery, c.quick), judgeHistory(r.History, c.quick), judgeInbox(r.Inbox, c.quick), judgeTalk(r.Talk, c.quick), judgeSlack(r.Slack, r.SlackOutage, c.quick))
	if c.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.markdown(out)
}

// measure measures the selected scenarios: the engines, waiting runs, the server, and parked runs.
func (c config) measure(ctx context.Context, r *report, progress io.Writer) (err error) {
	engines := plan{rounds: c.rounds, duration: stretch}
	hold, web, park, recovery, inbox, talking, clicks := holdFull, webFull, parkedFull, recoveryFull, inboxFull, talkFull, slackFull
	talking.conversations = c.talking
	if c.quick {
		engines, hold, web, park, recovery, inbox, talking, clicks, r.Rounds = plan{rounds: 1}, holdQuick, webQuick, parkedQuick, recoveryQuick, inboxQuick, talkQuick, slackQuick, 1
	}
	chosen := matching(c.scenario, scenarios(), func(s scenario) string { return s.name })
	holding := matching(c.scenario, holdScenarios(), holdScenario.name)
	deciding := matching(c.scenario, deskScenarios(), holdScenario.name)
	serving := matching(c.scenario, webScenarios(), holdScenario.name)
	web.noisy = matching(c.scenario, []string{onSQLite, onPostgres}, noisyName)
	var parking, reporting []string
	if c.parked > 0 {
		parking = matching(c.scenario, []string{onSQLite, onPostgres}, parkedName)
	}
	if c.decided > 0 {
		reporting = matching(c.scenario, []string{onSQLite, onPostgres}, historyName)
	}
	reading := matching(c.scenario, []string{onSQLite, onPostgres}, inboxName)
	conversing := matching(c.scenario, []string{onSQLite, onPostgres}, talkName)
	clicking := matching(c.scenario, []string{onSQLite, onPostgres}, slackName)
	interrupted := c.scenario.MatchString(slackOutageName)
	breaking := c.scenario.MatchString(recoveryName)
	if !breaking && !interrupted && len(clicking)+len(chosen)+len(holding)+len(deciding)+len(serving)+len(web.noisy)+len(parking)+len(reporting)+len(reading)+len(conversing) == 0 {
		return fmt.Errorf("no scenario matches %s, or it is parked/… or history/… and needs -parked or -decided", c.scenario)
	}
	for i := range chosen {
		if c.quick && chosen[i].bulky {
			chosen[i].eino = nil
		}
	}
	r.Results, err = engines.measure(ctx, chosen, func(round int, scenario string) {
		fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, engines.rounds, scenario)
	})
	if err != nil {
		return err
	}
	hold.rounds, hold.langGraph = min(hold.rounds, c.rounds), true
	if r.Hold, err = hold.measure(ctx, holding, progress); err != nil {
		return err
	}
	if r.Desk, err = hold.measureDesk(ctx, deciding, progress); err != nil {
		return err
	}
	web.rounds = min(web.rounds, c.rounds)
	if r.Web, err = web.measure(ctx, serving, progress); err != nil {
		return err
	}
	park.many = c.parked
	r.Parked, err = measureOnEach(parking, parkedName, func(on string) (parkedResult, error) { return park.measure(ctx, on, progress) })
	if err != nil {
		return err
	}
	if breaking {
		one, err := recovery.measure(ctx, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", recoveryName, err)
		}
		r.Recovery = append(r.Recovery, one)
	}
	r.History, err = measureOnEach(reporting, historyName, func(on string) (historyResult, error) { return measureHistory(ctx, on, c.decided, progress) })
	if err != nil {
		return err
	}
	r.Inbox, err = measureOnEach(reading, inboxName, func(on string) (inboxReads, error) { return inbox.measure(ctx, on, progress) })
	if err != nil {
		return err
	}
	r.Talk, err = measureOnEach(conversing, talkName, func(on string) (talkResult, error) { return talking.measure(ctx, on, progress) })
	if err != nil {
		return err
	}
	r.Slack, err = measureOnEach(clicking, slackName, func(on string) (slackResult, error) { return clicks.measure(ctx, on, progress) })
	if err != nil || !interrupted {
		return err
	}
	one, err := clicks.measureOutage(ctx, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", slackOutageName, err)
	}
	r.SlackOutage = append(r.SlackOutage, one)
	return nil
}

// matching returns the scenarios whose names match.
func matching[S any](pattern *regexp.Regexp, all []S, name func(S) string) []S {
	return slices.DeleteFunc(all, func(s S) bool { return !pattern.MatchString(name(s)) })
}

// measureOnEach measures a scenario on one database after the other.
func measureOnEach[R any](databases []string, name func(on string) string, measure func(on string) (R, error)) (all []R, err error) {
	for _, on := range databases {
		one, err := measure(on)
		if err != nil {
			return all, fmt.Errorf("%s: %w", name(on), err)
		}
		all = append(all, one)
	}
	return all, nil
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
