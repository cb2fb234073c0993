package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Checked is a run that is not over, and whether this program could go on with it.
type Checked struct {
	store.Run // without what is sealed
	// Err says why not; nil if it could.
	Err error
}

// Check looks at every run that is not over, of all accounts, and says whether this program could go on with it, as far as that can be known
// without doing so; see [provider.Checker]. It runs and changes nothing, while others may.
func (e *Executor) Check(ctx context.Context) iter.Seq2[Checked, error] {
	return func(yield func(Checked, error) bool) {
		err := e.eachAccount(ctx, func(account string) error {
			if !e.checkAccount(ctx, account, yield) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Checked{}, err)
		}
	}
}

// errEnough says that somebody wants no more.
var errEnough = errors.New("executor: enough")

func (e *Executor) checkAccount(ctx context.Context, account string, yield func(Checked, error) bool) bool {
	filter := store.Filter{Status: []store.Status{store.Ready, store.Running, store.Waiting, store.Parked}}
	for run, err := range e.runs(ctx, account, filter) {
		if err != nil {
			yield(Checked{}, err)
			return false
		}
		if !yield(Checked{Run: run, Err: e.checkRun(ctx, run)}, nil) {
			return false
		}
	}
	return true
}

func (e *Executor) checkRun(ctx context.Context, run store.Run) error {
	p, err := e.providerOf(run)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(p.Graphs(), func(g provider.Graph) bool { return g.Name == run.Graph }) {
		return fmt.Errorf("%w: this program has no graph %q", ErrUnknownGraph, run.Provider+":"+run.Graph)
	}
	checker, ok := p.(provider.Checker)
	if !ok {
		return nil
	}
	full, err := e.store.Get(ctx, run.Account, run.StateKey) // a list has not what is sealed
	if isNotFound(err) || err == nil && full.ID != run.ID {
		return nil // it is over by now
	}
	if err != nil {
		return err
	}
	named, err := e.runOf(full, e.stateOf())
	if err != nil {
		return err
	}
	if err := checker.Resumable(ctx, named); err != nil {
		return err
	}
	return e.takesTheAnswers(ctx, run)
}

// ErrOtherAnswers says that a run waits for an answer of another form than this program would take: whoever answers as it was shown would be refused.
var ErrOtherAnswers = errors.New("executor: the answer has another form in this program")

// takesTheAnswers looks whether the open questions of a run are such as this program would ask.
func (e *Executor) takesTheAnswers(ctx context.Context, run store.Run) error {
	asked, err := e.store.Interrupts(ctx, run.Account, run.ID)
	if err != nil {
		return err
	}
	for _, i := range asked {
		kind, known := fermata.LookupKind(i.Kind)
		if i.State == store.Pending && known && len(i.Schema) > 0 && !sameJSON(i.Schema, kind.AnswerSchema()) {
			return fmt.Errorf("%w: %s asks a question of the kind %q", ErrOtherAnswers, i.Address, i.Kind)
		}
	}
	return nil
}

// sameJSON reports whether two texts say the same, however they are written.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
