package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The scenarios http/… do the same as hold/… through the server: each caller has a connection to a
// server in its own process. It alternates with direct calls of the executor. Then decisions
// arrive at a constant rate, event streams are opened, and the server is overloaded: by a single
// tenant, and by one of two.

// webScenarios lists them in the order of the report.
func webScenarios() (list []holdScenario) {
	for _, on := range []string{onSQLite, onPostgres} {
		for _, callers := range []int{1, 4, 16} {
			list = append(list, holdScenario{"http", on, workloadReview, callers})
		}
	}
	return list
}

// minOfExecutor is the goal for the server's operations per second, relative to the executor alone.
const minOfExecutor = 0.75

// webPlan defines the precision of the measurement.
type webPlan struct {
	holdPlan
	// streams is the number of event streams, paced the duration of the constant rate, overload and
	// noisy those of the overloads.
	streams                int
	paced, overload, noisy time.Duration
}

var (
	webFull  = webPlan{holdPlan: holdPlan{rounds: 5, stretch: time.Second}, streams: 10_000, paced: 2 * time.Second, overload: 4 * time.Second, noisy: 4 * time.Second}
	webQuick = webPlan{holdPlan: holdPlan{rounds: 1}, streams: 100, paced: 100 * time.Millisecond, overload: 100 * time.Millisecond, noisy: 100 * time.Millisecond}
)

// measureWeb measures the server.
func measureWeb(ctx context.Context, c config, r *recorder) error {
	p := webFull
	if c.quick {
		p = webQuick
	}
	p.rounds = min(p.rounds, c.rounds)
	for _, all := range groupBy(webScenarios(), func(s holdScenario) string { return s.database }) {
		name := "http/" + all[0].database
		list, noisy := selected(c, all, holdScenario.name), c.scenario.MatchString(name+"/noisy")
		if len(list) == 0 && !noisy {
			continue
		}
		if err := p.measureOn(ctx, name, all[0].database, list, noisy, r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (p webPlan) measureOn(ctx context.Context, name, database string, list []holdScenario, noisy bool, r *recorder) (err error) {
	db, err := newDatabase(ctx, database, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	f, err := p.newComparison(ctx, db, newWorkload(workloadReview), []string{sideHTTP, sideOurs}, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if len(list) > 0 {
		if err := p.measureRows(ctx, f, name, list); err != nil {
			return err
		}
	}
	if noisy {
		return f.noisy(ctx, name+"/noisy", p.noisy)
	}
	return nil
}

// measureRows measures everything except the noisy tenant.
func (p webPlan) measureRows(ctx context.Context, f *comparison, name string, list []holdScenario) error {
	highest := 0.0
	for _, s := range list {
		decisions, err := f.measure(ctx, s, sideOurs, minOfExecutor)
		if err != nil {
			return fmt.Errorf("%d callers: %w", s.callers, err)
		}
		highest = max(highest, decisions)
	}
	if err := f.paced(ctx, name+"/paced", pacedShare*highest, p.paced); err != nil {
		return err
	}
	if err := f.streams(ctx, name+"/streams", p.streams); err != nil {
		return err
	}
	return f.overload(ctx, name+"/overload", p.overload)
}
