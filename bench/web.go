package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// The scenarios http/… do the same as hold/… through the server: each caller has a connection to a
// server in its own process. It alternates with direct calls of the executor, and with raw SQL.
// Then decisions arrive at a constant rate, event streams are opened, and the server is overloaded:
// by a single tenant, and by one of two.

// webScenarios lists them in the order of the report.
func webScenarios() (list []holdScenario) {
	for _, ground := range []string{onSQLite, onPostgres} {
		for _, callers := range []int{1, 4, 16} {
			list = append(list, holdScenario{kind: "http", database: ground, callers: callers})
		}
	}
	return list
}

// webPlan defines the precision of the measurement.
type webPlan struct {
	holdPlan
	// streams is the number of event streams, paced the duration of the constant rate, overload the
	// duration of the overload.
	streams  int
	paced    time.Duration
	overload time.Duration
	// noisy are the databases for the noisy tenant, and noisyDuration how long it is noisy.
	noisy         []string
	noisyDuration time.Duration
}

var (
	webFull  = webPlan{holdPlan: holdPlan{rounds: 5, stretch: time.Second}, streams: 10_000, paced: 2 * time.Second, overload: 4 * time.Second, noisyDuration: 4 * time.Second}
	webQuick = webPlan{holdPlan: holdPlan{rounds: 1}, streams: 100, paced: 100 * time.Millisecond, overload: 100 * time.Millisecond, noisyDuration: 100 * time.Millisecond}
)

// webReport is the result of the scenarios.
type webReport struct {
	holdReport
	Paced     []pacedResult    `json:"paced,omitempty"`
	Streams   []streamResult   `json:"streams,omitempty"`
	Overloads []overloadResult `json:"overloads,omitempty"`
	Noisy     []noisyResult    `json:"noisy,omitempty"`
}

func (p webPlan) measure(ctx context.Context, list []holdScenario, progress io.Writer) (found webReport, err error) {
	p.web, p.langGraph = true, false
	for _, on := range []string{onSQLite, onPostgres} {
		var here []holdScenario
		for _, s := range list {
			if s.database == on {
				here = append(here, s)
			}
		}
		if len(here) == 0 && !slices.Contains(p.noisy, on) {
			continue
		}
		if err := p.measureOn(ctx, on, here, progress, &found); err != nil {
			return found, fmt.Errorf("http/%s: %w", on, err)
		}
	}
	return found, nil
}

func (p webPlan) measureOn(ctx context.Context, name string, list []holdScenario, progress io.Writer, found *webReport) (err error) {
	db, err := newDatabase(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	version, err := db.version(ctx)
	if err != nil {
		return err
	}
	found.Databases, found.Rounds = append(found.Databases, version), p.rounds
	f, err := p.newComparison(ctx, db, newWorkload(workloadReview), progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	found.note(f)
	if len(list) > 0 {
		if err := p.measureRows(ctx, f, list, found); err != nil {
			return err
		}
	}
	if slices.Contains(p.noisy, name) {
		noisy, err := f.noisy(ctx, p.noisyDuration)
		if err != nil {
			return fmt.Errorf("%s: %w", noisyName(name), err)
		}
		found.Noisy = append(found.Noisy, noisy)
	}
	return nil
}

// measureRows measures everything except the noisy tenant.
func (p webPlan) measureRows(ctx context.Context, f *comparison, list []holdScenario, found *webReport) error {
	rawSQL := 0.0
	for _, s := range list {
		rows, err := f.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%d callers: %w", s.callers, err)
		}
		found.Rows = append(found.Rows, rows...)
		rawSQL = max(rawSQL, rows[1].Sides[sideRawSQL].Median)
	}
	paced, err := f.paced(ctx, rawSQL, p.paced)
	if err != nil {
		return err
	}
	found.Paced = append(found.Paced, paced)
	client := f.targets[sideHTTP].(*callerPool).runKeeper.(*webClient)
	fmt.Fprintf(f.progress, "http/%s: %d event streams\n", f.database.name(), p.streams)
	streams, err := client.streams(ctx, f.database.name(), p.streams)
	if err != nil {
		return err
	}
	found.Streams = append(found.Streams, streams)
	overload, err := f.overload(ctx, p.rounds, p.overload)
	found.Overloads = append(found.Overloads, overload)
	return err
}
