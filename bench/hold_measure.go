package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/fermata-go/fermata/executor"
)

// holdScenario is some callers on one kind of database.
type holdScenario struct {
	ground  string
	piece   string // in scenarios hold/…
	callers int
	kind    string // hold, http or desk
}

func (s holdScenario) name() string {
	if s.piece == pieceChain {
		return fmt.Sprintf("%s/%s/%s/%d", s.kind, s.ground, s.piece, s.callers)
	}
	return fmt.Sprintf("%s/%s/%d", s.kind, s.ground, s.callers)
}

// holdScenarios lists them in the order of the report. Those of one ground follow each other, and among them those of one piece.
func holdScenarios() (list []holdScenario) {
	for _, ground := range []string{onSQLite, onPostgres} {
		for _, callers := range []int{1, 4, 16, 32} {
			list = append(list, holdScenario{kind: "hold", ground: ground, piece: pieceReview, callers: callers})
		}
		for _, callers := range []int{1, 4} {
			list = append(list, holdScenario{kind: "hold", ground: ground, piece: pieceChain, callers: callers})
		}
	}
	return list
}

// The sides. The last one is LangGraph with the durability of ours, for those who wonder.
const (
	sideOurs          = "ours"
	sideBare          = "bare"
	sideLangGraph     = "langgraph"
	sideLangGraphFull = "langgraph-full"
	sideHTTP          = "http"
)

// holdPlan says how carefully to measure.
type holdPlan struct {
	rounds int
	// stretch is how long callers start runs in one round; they decide as many as they have started. 0 is one run each.
	stretch time.Duration
	// sized is how many runs are stored to see what they take.
	sized int
	// langGraph is whether LangGraph's side is there, web whether the server's is.
	langGraph, web bool
}

var (
	holdCarefully = holdPlan{rounds: 5, stretch: 600 * time.Millisecond, sized: 200}
	holdQuickly   = holdPlan{rounds: 1, sized: 5}
)

// measure measures scenarios, one ground after the other.
func (p holdPlan) measure(ctx context.Context, list []holdScenario, progress io.Writer) (held holdReport, err error) {
	if len(list) == 0 {
		return held, nil
	}
	if p.langGraph {
		if err := installLangGraph(ctx, progress); err != nil {
			return held, err
		}
	}
	for _, group := range alike(list, func(s holdScenario) string { return s.ground }) {
		if err := p.measureOn(ctx, group[0].ground, group, progress, &held); err != nil {
			return held, fmt.Errorf("hold/%s: %w", group[0].ground, err)
		}
	}
	return held, nil
}

// alike cuts a list where something changes from one scenario to the next.
func alike(list []holdScenario, what func(holdScenario) string) (groups [][]holdScenario) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && what(list[n]) == what(list[0]) {
			n++
		}
		groups, list = append(groups, list[:n]), list[n:]
	}
	return groups
}

func (p holdPlan) measureOn(ctx context.Context, name string, list []holdScenario, progress io.Writer, held *holdReport) (err error) {
	on, err := newGround(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	version, err := on.version(ctx)
	if err != nil {
		return err
	}
	held.Databases, held.Rounds = append(held.Databases, version), p.rounds
	for _, group := range alike(list, func(s holdScenario) string { return s.piece }) {
		if err := p.measurePiece(ctx, on, group, progress, held); err != nil {
			return err
		}
	}
	return nil
}

func (p holdPlan) measurePiece(ctx context.Context, on ground, list []holdScenario, progress io.Writer, held *holdReport) (err error) {
	f, err := p.newField(ctx, on, newPiece(list[0].piece), progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	held.note(f)
	for _, s := range list {
		rows, err := f.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%d callers: %w", s.callers, err)
		}
		held.Rows = append(held.Rows, rows...)
	}
	sizes, err := f.sizes(ctx)
	held.Sizes = append(held.Sizes, sizes)
	held.LangGraph = f.langGraphVersion
	return err
}

// newField makes all sides on a ground, warm.
func (p holdPlan) newField(ctx context.Context, on ground, plays piece, progress io.Writer) (_ *field, err error) {
	f := &field{plan: p, ground: on, piece: plays, progress: progress}
	if f.sealer, err = newBox(); err != nil {
		return nil, err
	}
	if f.script, err = takeDown(ctx, on, f.sealer, f.piece); err != nil {
		return nil, err
	}
	if err := f.fill(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// field is all sides on one ground, with one piece.
type field struct {
	plan      holdPlan
	ground    ground
	piece     piece
	sealer    executor.Box
	saveDelay time.Duration // of our side; 0 is what everybody has
	script    *script
	progress  io.Writer

	names            []string
	holders          map[string]holder
	langGraphVersion string
}

// sides are those that there are on this ground.
func (f *field) sides() []string {
	sides := []string{sideOurs, sideBare}
	if f.plan.web {
		sides = append(sides, sideHTTP)
	}
	if f.plan.langGraph {
		sides = append(sides, sideLangGraph)
		if f.ground.name() == onSQLite {
			sides = append(sides, sideLangGraphFull)
		}
	}
	return sides
}

// make makes a side with a new database, and says where that is.
func (f *field) make(ctx context.Context, side string) (h holder, place string, err error) {
	if place, err = f.ground.room(); err != nil {
		return nil, "", err
	}
	switch side {
	case sideBare:
		sql, err := f.ground.play(ctx, place, f.script)
		if err != nil {
			return nil, "", err
		}
		return &crowd{keeper: &bare{script: f.script, sql: sql}}, place, nil
	case sideLangGraph, sideLangGraphFull:
		saver := f.ground.name()
		if side == sideLangGraphFull {
			saver += "-full"
		}
		l, err := newLangGraph(ctx, saver, place, f.piece)
		if err != nil {
			return nil, "", err
		}
		f.langGraphVersion = l.version
		return l, place, nil
	case sideHTTP:
		client, err := newWebClient(ctx, childOrder{Ground: f.ground.name(), Place: place, Text: f.piece.text, Sealed: true})
		if err != nil {
			return nil, "", err
		}
		return &crowd{keeper: client}, place, nil
	}
	kept, err := f.ground.open(ctx, place)
	if err != nil {
		return nil, "", err
	}
	e, err := newExecuting(executor.Config{Store: kept, Box: f.sealer, SaveDelay: f.saveDelay}, f.piece, kept.Close)
	if err != nil {
		return nil, "", errors.Join(err, kept.Close())
	}
	return &crowd{keeper: e}, place, nil
}

// fill makes all sides and warms them up: whoever compiles while it runs has time to do so.
func (f *field) fill(ctx context.Context) error {
	f.holders = make(map[string]holder)
	for _, side := range f.sides() {
		h, _, err := f.make(ctx, side)
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		f.names, f.holders[side] = append(f.names, side), h
		if err := f.warm(ctx, side); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) warm(ctx context.Context, side string) error {
	fmt.Fprintf(f.progress, "%s: warming %s up\n", f.ground.name(), side)
	h := f.holders[side]
	if _, err := h.starts(ctx, 4, stretchOf{lasts: 3 * f.plan.stretch, least: 4}); err != nil {
		return fmt.Errorf("%s: %w", side, err)
	}
	if _, err := h.decides(ctx, 4); err != nil {
		return fmt.Errorf("%s: %w", side, err)
	}
	return nil
}

func (f *field) close() error {
	var errs []error
	for _, h := range f.holders {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// measure lets the sides take turns.
func (f *field) measure(ctx context.Context, s holdScenario) ([]holdRow, error) {
	found := map[act]map[string][]work{starting: {}, deciding: {}}
	for round := range f.plan.rounds {
		fmt.Fprintf(f.progress, "round %d of %d: %s\n", round+1, f.plan.rounds, s.name())
		order := slices.Clone(f.names)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			var err error
			pprof.Do(ctx, pprof.Labels("side", side, "scenario", s.name()), func(ctx context.Context) {
				err = f.round(ctx, side, s.callers, found)
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side, err)
			}
		}
	}
	return []holdRow{newHoldRow(s, starting, found[starting]), newHoldRow(s, deciding, found[deciding])}, nil
}

func (f *field) round(ctx context.Context, side string, callers int, found map[act]map[string][]work) error {
	h := f.holders[side]
	started, err := f.metered(func() (work, error) {
		return h.starts(ctx, callers, stretchOf{lasts: f.plan.stretch, least: callers})
	})
	if err != nil {
		return err
	}
	decided, err := f.metered(func() (work, error) { return h.decides(ctx, callers) })
	if err == nil && len(decided.latencies) != len(started.latencies) {
		err = fmt.Errorf("%d runs were started, and %d decided", len(started.latencies), len(decided.latencies))
	}
	found[starting][side] = append(found[starting][side], started)
	found[deciding][side] = append(found[deciding][side], decided)
	return err
}

// metered adds what the database server used.
func (f *field) metered(do func() (work, error)) (work, error) {
	before, err := f.ground.cpuTime()
	if err != nil {
		return work{}, err
	}
	done, err := do()
	if err != nil {
		return work{}, err
	}
	after, err := f.ground.cpuTime()
	done.server = after - before
	return done, err
}

// sizes stores runs twice: what the first ones leave, free room too, is there already when the second ones come, as in a database that
// has been in use for a while.
func (f *field) sizes(ctx context.Context) (holdSizes, error) {
	found := holdSizes{Ground: f.ground.name(), Piece: f.piece.name, Runs: f.plan.sized, Bytes: map[string]holdSize{}}
	for _, side := range f.names {
		if side == sideLangGraphFull {
			continue // it stores the same
		}
		fmt.Fprintf(f.progress, "%s: how much %s stores\n", found.name(), side)
		size, err := f.size(ctx, side)
		if err != nil {
			return found, fmt.Errorf("%s: %w", side, err)
		}
		found.Bytes[side] = size
	}
	return found, nil
}

func (f *field) size(ctx context.Context, side string) (_ holdSize, err error) {
	h, place, err := f.make(ctx, side)
	if err != nil {
		return holdSize{}, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	var waiting, over [2]int64
	for i := range 2 {
		if _, err := h.starts(ctx, 4, stretchOf{least: f.plan.sized}); err != nil {
			return holdSize{}, err
		}
		if waiting[i], err = f.ground.size(ctx, place); err != nil {
			return holdSize{}, err
		}
		if _, err := h.decides(ctx, 4); err != nil {
			return holdSize{}, err
		}
		if over[i], err = f.ground.size(ctx, place); err != nil {
			return holdSize{}, err
		}
	}
	n := int64(f.plan.sized)
	return holdSize{Waiting: (waiting[1] - over[0]) / n, Over: (over[1] - over[0]) / n}, nil
}
