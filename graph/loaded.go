package graph

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fermata-go/fermata"
)

// LoadedRun is a saved run in memory. The checkpoint is loaded and decoded once, by [Flow.Load],
// for all methods. It is not safe for concurrent use.
type LoadedRun[S any] struct {
	flow    *Flow[S]
	exec    *execution
	resumed bool
}

// Load loads a saved run without running or changing anything. The options are those of
// [Flow.Resume].
func (fl *Flow[S]) Load(ctx context.Context, run string, list ...Option) (*LoadedRun[S], error) {
	exec, err := fl.open(ctx, run, list)
	if err != nil {
		return nil, err
	}
	return &LoadedRun[S]{flow: fl, exec: exec}, nil
}

// Inspect returns a view of the run as it was loaded.
func (l *LoadedRun[S]) Inspect() (*Snapshot[S], error) {
	state, err := l.flow.readState(l.exec.loaded, "", nil)
	if err != nil {
		return nil, err
	}
	head := &l.exec.loaded.head
	return &Snapshot[S]{
		Run: l.exec.run, Status: head.Status, Error: head.Error, State: *state.(*S),
		Interrupts: l.exec.openInterrupts(l.flow.compiled), Version: l.exec.loaded.version,
	}, nil
}

// Check reports whether this build can resume the run; see [Flow.Check].
func (l *LoadedRun[S]) Check() error {
	if err := l.flow.checkResumable(l.exec.loaded); err != nil {
		return err
	}
	if missing := l.exec.unknownKinds(); len(missing) > 0 {
		return l.flow.programChanged(l.exec.run, missing...)
	}
	_, err := l.flow.readState(l.exec.loaded, "", nil)
	return err
}

// CheckAnswer validates an answer; see [Flow.CheckAnswer].
func (l *LoadedRun[S]) CheckAnswer(interruptID string, answer any) (json.RawMessage, error) {
	checked, err := l.exec.checkAnswers(l.flow.compiled, map[string]any{interruptID: answer})
	if err != nil {
		return nil, err
	}
	return checked[0].answer, nil
}

// Resume continues the run; see [Flow.Resume]. If another execution has saved the run since it was
// loaded, Resume returns [ErrRunning]. After a [*fermata.AnswerError] nothing has run or changed,
// and Resume may be called again with other answers. Otherwise it can be called once.
func (l *LoadedRun[S]) Resume(ctx context.Context) (S, error) {
	if l.resumed {
		var zero S
		return zero, fmt.Errorf("graph: run %s was already resumed: load it again", l.exec.run)
	}
	state, err := l.flow.resume(ctx, l.exec)
	_, rejected := err.(*fermata.AnswerError) // not one inside another error
	l.resumed = !rejected
	return typedState[S](state, err)
}
