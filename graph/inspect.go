package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/savable"
	"github.com/fermata-go/fermata/internal/visit"
)

// Name is what the graph was called when it was made.
func (fl *Flow[S]) Name() string { return fl.name }

// Snapshot is a saved run, looked at and not touched.
type Snapshot[S any] struct {
	Run    string
	Status Status
	// Error is what the run failed with, if it did.
	Error string
	// State is that of the outermost graph.
	State S
	// Interrupts are the places where the run waits.
	Interrupts []*fermata.InterruptCtx
	// Version counts the saves of the run.
	Version int64
}

// Inspect looks at a saved run without running or changing anything.
func (fl *Flow[S]) Inspect(ctx context.Context, run string, list ...Option) (*Snapshot[S], error) {
	s, err := fl.open(ctx, run, list)
	if err != nil {
		return nil, err
	}
	state, err := fl.savedState(s.loaded, "", nil)
	if err != nil {
		return nil, err
	}
	return &Snapshot[S]{
		Run: run, Status: s.head.Status, Error: s.head.Error, State: *state.(*S), Interrupts: s.waiting(fl.compiled), Version: s.version,
	}, nil
}

// Check says whether this build could go on with a saved run: nil, a [*ChangedError], or why the run cannot be read. It
// runs and changes nothing.
func (fl *Flow[S]) Check(ctx context.Context, run string, list ...Option) error {
	s, err := fl.open(ctx, run, list)
	if err != nil {
		return err
	}
	if missing := fl.resumable(s.loaded, ""); len(missing) > 0 {
		return fl.changed(run, missing...)
	}
	_, err = fl.savedState(s.loaded, "", nil)
	return err
}

// CheckAnswer says whether an answer would be taken: it returns it as JSON, or the error that [Flow.Resume] would return. It runs
// and changes nothing.
func (fl *Flow[S]) CheckAnswer(ctx context.Context, run, interruptID string, answer any, list ...Option) (json.RawMessage, error) {
	check, err := fl.CheckAnswers(ctx, run, list...)
	if err != nil {
		return nil, err
	}
	return check(interruptID, answer)
}

// CheckAnswers reads a run for checking many answers to it: what it returns does for each what [Flow.CheckAnswer] does, without reading the run again.
func (fl *Flow[S]) CheckAnswers(ctx context.Context, run string, list ...Option) (func(interruptID string, answer any) (json.RawMessage, error), error) {
	s, err := fl.open(ctx, run, list)
	if err != nil {
		return nil, err
	}
	return func(interruptID string, answer any) (json.RawMessage, error) {
		checked, err := s.check(fl.compiled, map[string]any{interruptID: answer})
		if err != nil {
			return nil, err
		}
		return checked[0].answer, nil
	}, nil
}

// savedState reads the state of a frame: the newest, or that of one of its tasks.
func (fl *compiled) savedState(saved *checkpoint, frameAt string, task *savedTask) (statePtr, error) {
	f := newFrame(fl, nil, frameAt, fl.name)
	sf := saved.at(frameAt).frame
	if sf == nil {
		return nil, fmt.Errorf("%w: part %q is missing", ErrCorrupt, partFrame+frameAt)
	}
	f.clock = sf.Clock
	loader := stateLoader{frame: f, saved: saved, frameSaved: sf, changed: sf.Shape != fl.shape.print}
	if err := loader.fields(); err != nil {
		return nil, err
	}
	if task != nil {
		return loader.at(task.At)
	}
	return f.state, nil
}

// down goes one place down: to the graph inside the node that the first segment names, and to what is left of the place.
func (fl *compiled) down(place fermata.Address) (inner *compiled, first string, rest fermata.Address) {
	at := place[:1]
	rest = place[1:]
	n, ok := fl.find(at[0].ID)
	if !ok || fl.nodes[n].sub == nil {
		return nil, "", nil
	}
	if fl.nodes[n].fanOut && len(rest) > 0 {
		at, rest = place[:2], place[2:]
	}
	return fl.nodes[n].sub, at.String(), rest
}

func (fl *compiled) checkHold(place fermata.Address, answer any) ([]byte, error) {
	if len(place) <= 1 {
		return encodeState(fl.shape, answer)
	}
	inner, _, rest := fl.down(place)
	if inner == nil || len(rest) == 0 { // a graph that a node runs by itself: it checks when it gets the answer
		if answer == nil {
			return nil, nil
		}
		return savable.Encode(answer)
	}
	return inner.checkHold(rest, answer)
}

func (fl *compiled) heldState(saved *checkpoint, frameAt string, place fermata.Address) any {
	if saved == nil || len(place) == 0 {
		return nil
	}
	if len(place) == 1 {
		task := saved.at(visit.Join(frameAt, place.String())).task
		if task == nil {
			return nil
		}
		state, err := fl.savedState(saved, frameAt, task)
		if err != nil {
			return nil
		}
		return fl.shape.value(state)
	}
	inner, first, rest := fl.down(place)
	if inner == nil || len(rest) == 0 {
		return nil
	}
	return inner.heldState(saved, visit.Join(frameAt, first), rest)
}

func (fl *compiled) resumable(saved *checkpoint, frameAt string) (missing []string) {
	sf := saved.at(frameAt).frame
	if sf == nil {
		return nil // the node has not come to it yet
	}
	if sf.Print == fl.print {
		return nil // the fingerprint covers the graphs inside, too
	}
	if text := fl.renamed(sf); text != "" {
		missing = append(missing, text)
	} else if sf.Shape != fl.shape.print {
		_, err := fl.savedState(saved, frameAt, nil)
		if changed, ok := errors.AsType[*ChangedError](err); ok { // what else is wrong with it, loading will say
			missing = append(missing, changed.Missing...)
		}
	}
	for _, name := range slices.Concat(sf.Next, sf.Again) {
		if _, ok := fl.find(name); !ok {
			missing = append(missing, fmt.Sprintf("%s (graph %s)", nodeSegment(name), fl.name))
		}
	}
	for _, task := range saved.at(frameAt).tasks {
		n, ok := fl.find(task.Node)
		if !ok {
			missing = append(missing, fmt.Sprintf("%s (graph %s)", nodeSegment(task.Node), fl.name))
			continue
		}
		missing = append(missing, fl.resumableInside(saved, task, fl.nodes[n])...)
	}
	return missing
}

// resumableInside is resumable for the graphs inside a node.
func (fl *compiled) resumableInside(saved *checkpoint, task *savedTask, n *node) (missing []string) {
	for _, frame := range innerFrames(saved, task.place) {
		inner := saved.at(frame).frame
		isItem := frame != task.place
		if n.sub == nil || n.fanOut != isItem || n.sub.name != inner.Graph {
			what := "graph"
			if isItem {
				what = "graph for each of a list,"
			}
			return append(missing, fmt.Sprintf("a %s %s, at work in %s (graph %s)", what, inner.Graph, nodeSegment(task.Node), fl.name))
		}
		missing = append(missing, n.sub.resumable(saved, frame)...)
	}
	return missing
}

// innerFrames lists the frames right inside a visit: that of a graph in the node, or those of a graph for each item. Graphs that the
// node's own code runs are not among them.
func innerFrames(saved *checkpoint, place string) []string {
	var frames []string
	if saved.at(place).frame != nil {
		frames = append(frames, place)
	}
	for _, part := range saved.at(place).below {
		at, ok := strings.CutPrefix(part, partFrame)
		outer, last := cutPlace(at)
		if ok && outer == place && strings.HasPrefix(last, itemPrefix) && saved.at(at).frame != nil {
			frames = append(frames, at)
		}
	}
	return frames
}

const itemPrefix = string(fermata.SegmentItem) + ":"
