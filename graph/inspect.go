package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// Name returns the name of the graph.
func (fl *Flow[S]) Name() string { return fl.name }

// Snapshot is a read-only view of a saved run.
type Snapshot[S any] struct {
	Run    string
	Status Status
	// Error is the failure of the run, if any.
	Error string
	// State is the state of the outermost graph.
	State S
	// Interrupts are the places where the run waits.
	Interrupts []*fermata.InterruptCtx
	// Version counts the saves of the run.
	Version int64
}

// Inspect reads a saved run without running or changing anything.
func (fl *Flow[S]) Inspect(ctx context.Context, run string, list ...Option) (*Snapshot[S], error) {
	loaded, err := fl.Load(ctx, run, list...)
	if err != nil {
		return nil, err
	}
	return loaded.Inspect()
}

// Check reports whether this build can resume a saved run. It returns nil, a
// [*ProgramChangedError], or the reason why the run cannot be read. It runs and changes nothing.
func (fl *Flow[S]) Check(ctx context.Context, run string, list ...Option) error {
	loaded, err := fl.Load(ctx, run, list...)
	if err != nil {
		return err
	}
	return loaded.Check()
}

// unknownKinds lists the open interrupts whose kind this program does not have.
func (exec *execution) unknownKinds() (missing []string) {
	for _, r := range exec.records.All() {
		if _, known := fermata.LookupKind(r.Kind); !known && r.Kind != "" && r.Kind != KindHold && r.Status == activation.StatusOpen {
			missing = append(missing, unknownKindText(r))
		}
	}
	return missing
}

// CheckAnswer validates an answer without running or changing anything. It returns the answer as
// JSON, or the error that [Flow.Resume] would return. To validate several answers, or to resume
// with them, use [Flow.Load].
func (fl *Flow[S]) CheckAnswer(ctx context.Context, run, interruptID string, answer any, list ...Option) (json.RawMessage, error) {
	loaded, err := fl.Load(ctx, run, list...)
	if err != nil {
		return nil, err
	}
	return loaded.CheckAnswer(interruptID, answer)
}

// readState reads the state of an instance: the newest, or that of one of its tasks.
func (fl *compiled) readState(saved *checkpoint, frameAt string, task *savedTask) (statePtr, error) {
	loader, err := fl.newStateLoader(saved, frameAt)
	if err != nil {
		return nil, err
	}
	if task != nil {
		return loader.stateAt(task.BaseClock)
	}
	return loader.instance.state, nil
}

// newStateLoader reads the states of a saved instance without resuming it.
func (fl *compiled) newStateLoader(saved *checkpoint, frameAt string) (*stateLoader, error) {
	f := newInstance(fl, nil, activation.Instance{Place: frameAt, Address: fl.name})
	sf := saved.at(frameAt).instance
	if sf == nil {
		return nil, fmt.Errorf("%w: part %q is missing", ErrCorrupt, partInstance+frameAt)
	}
	f.clock = sf.Clock
	loader := &stateLoader{instance: f, saved: saved, savedInst: sf, changed: sf.StateFingerprint != fl.stateType.fingerprint}
	return loader, loader.fields()
}

// descend returns the graph inside the node that the first segment names, and the rest of the
// place.
func (fl *compiled) descend(place fermata.Address) (inner *compiled, first string, rest fermata.Address) {
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
	if raw, ok := answer.(json.RawMessage); ok && bytes.Equal(bytes.TrimSpace(raw), jsonNull) {
		//mutate:nested-hold-release
		answer = nil // null from another process releases the hold; it is not an empty state
	}
	if len(place) <= 1 {
		return encodeState(fl.stateType, answer)
	}
	inner, _, rest := fl.descend(place)
	// a graph that the node's own code runs: it validates the answer itself
	if inner == nil || len(rest) == 0 {
		if answer == nil {
			return nil, nil
		}
		return roundtrip.Encode(answer)
	}
	return inner.checkHold(rest, answer)
}

func (fl *compiled) heldState(saved *checkpoint, frameAt string, place fermata.Address) any {
	if saved == nil || len(place) == 0 {
		return nil
	}
	if len(place) == 1 {
		task := saved.at(activation.Join(frameAt, place.String())).task
		if task == nil {
			return nil
		}
		state, err := fl.readState(saved, frameAt, task)
		if err != nil {
			return nil
		}
		return fl.stateType.valueOf(state)
	}
	inner, first, rest := fl.descend(place)
	if inner == nil || len(rest) == 0 {
		return nil
	}
	return inner.heldState(saved, activation.Join(frameAt, first), rest)
}

// checkResumable returns an error if this program cannot resume the run. It is called before an
// answer is saved, so it must find everything that restoring the instances would find: an instance
// without an answer may come from a much older program.
func (fl *compiled) checkResumable(saved *checkpoint) error {
	missing, err := fl.missing(saved, "")
	if len(missing) > 0 {
		return fl.programChanged(saved.head.Run, missing...)
	}
	return err
}

// missing lists the parts of the instance that the program does not have. The error reports other
// problems.
func (fl *compiled) missing(saved *checkpoint, frameAt string) (missing []string, err error) {
	sf := saved.at(frameAt).instance
	if text := fl.renamedFields(sf); text != "" {
		missing = append(missing, text)
	} else if sf.StateFingerprint != fl.stateType.fingerprint {
		missing, err = fl.unreadableStates(saved, frameAt)
	}
	for _, name := range slices.Concat(sf.Triggered, sf.NextRound) {
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
		if sf.Fingerprint != fl.fingerprint {
			missing = append(missing, fl.nodes[n].incompatibleResults(saved, task)...)
		}
		inside, failed := fl.missingInside(saved, task, fl.nodes[n])
		missing, err = append(missing, inside...), join(err, failed)
	}
	return missing, err
}

// unreadableStates is missing for the states of an instance: the newest one, and the inputs and
// results of its tasks.
func (fl *compiled) unreadableStates(saved *checkpoint, frameAt string) ([]string, error) {
	loader, err := fl.newStateLoader(saved, frameAt)
	for _, task := range saved.at(frameAt).tasks {
		if err == nil {
			_, err = loader.stateAt(task.BaseClock)
		}
		if err == nil && task.Status == taskFinished {
			_, err = loader.taskResult(task)
		}
	}
	if changed, ok := errors.AsType[*ProgramChangedError](err); ok {
		return changed.Missing, nil
	}
	return nil, err
}

// missingInside is missing for the graphs inside a node.
func (fl *compiled) missingInside(saved *checkpoint, task *savedTask, n *node) (missing []string, err error) {
	for _, frame := range innerInstances(saved, task.place) {
		inner := saved.at(frame).instance
		isItem := frame != task.place
		if n.sub == nil || n.fanOut != isItem || n.sub.name != inner.Graph {
			what := "graph"
			if isItem {
				what = "fan-out graph"
			}
			return append(missing, fmt.Sprintf("a %s %s, active in %s (graph %s)", what, inner.Graph, nodeSegment(task.Node), fl.name)), err
		}
		inside, failed := n.sub.missing(saved, frame)
		missing, err = append(missing, inside...), join(err, failed)
	}
	return missing, err
}

// incompatibleResults is missing for the results of list items that this program cannot decode. The
// other items would run and leave results that the earlier program cannot use either.
func (n *node) incompatibleResults(saved *checkpoint, task *savedTask) (missing []string) {
	if n.result == nil {
		return nil
	}
	for part, data := range saved.at(task.place).journal {
		outer, item := splitPlace(part)
		if outer != partResult+task.place || !strings.HasPrefix(item, itemPrefix) {
			continue
		}
		if err := checkDecodable(data, n.result); err != nil {
			return []string{fmt.Sprintf("a result of %s in %s that is not a %s (%v)", item, nodeSegment(task.Node), n.result, err)}
		}
	}
	return nil
}

func checkDecodable(data []byte, as reflect.Type) (err error) {
	defer recovery.Recover(&err) // a type may have JSON methods that panic
	return roundtrip.Decode(data, reflect.New(as).Interface())
}

// partResult is the part name prefix of fermata.Do results.
const partResult = "do "

// innerInstances lists the instances directly inside an activation: that of a graph in the node, or
// those of a graph for each item. It does not include graphs that the node's own code runs.
func innerInstances(saved *checkpoint, place string) []string {
	var frames []string
	if saved.at(place).instance != nil {
		frames = append(frames, place)
	}
	for _, part := range saved.at(place).below {
		at, ok := strings.CutPrefix(part, partInstance)
		outer, last := splitPlace(at)
		if ok && outer == place && strings.HasPrefix(last, itemPrefix) && saved.at(at).instance != nil {
			frames = append(frames, at)
		}
	}
	return frames
}

const itemPrefix = string(fermata.SegmentItem) + ":"
