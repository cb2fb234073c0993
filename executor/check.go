package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
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
		if i.State == store.Pending && known && len(i.Schema) > 0 && !takesAsWell(kind.AnswerSchema(), i.Schema) {
			return fmt.Errorf("%w: %s asks a question of the kind %q", ErrOtherAnswers, i.Address, i.Kind)
		}
	}
	return nil
}

// takesAsWell reports whether every answer of the form that a schema was also has the form that it is, however both are written. It knows of fields that were added and may
// be left out, of fields that have become such, and of more choices; whatever else differs is another form.
func takesAsWell(is, was []byte) bool {
	var x, y any
	return json.Unmarshal(is, &x) == nil && json.Unmarshal(was, &y) == nil && takes(x, y)
}

func takes(is, was any) bool {
	now, ok := is.(map[string]any)
	before, wasOne := was.(map[string]any)
	if !ok || !wasOne {
		return reflect.DeepEqual(is, was)
	}
	words := maps.Clone(before)
	maps.Copy(words, now)
	for word := range words {
		var same bool
		switch word {
		case "title", "description":
			same = true
		case "items":
			same = takes(now[word], before[word])
		case "properties":
			same = takesFields(now[word], before[word], before["additionalProperties"] == false)
		case "required":
			same = hasAll(now[word], before[word])
		case "enum":
			same = hasAll(before[word], now[word]) && before[word] != nil
		default:
			same = reflect.DeepEqual(now[word], before[word])
		}
		if !same {
			return false
		}
	}
	return true
}

// takesFields compares the fields of objects. One that is new says nothing to older answers if those could have no others.
func takesFields(is, was any, closed bool) bool {
	now, _ := is.(map[string]any)
	before, _ := was.(map[string]any)
	for name, old := range before {
		if field, there := now[name]; !there || !takes(field, old) {
			return false
		}
	}
	return closed || len(now) == len(before)
}

// hasAll reports whether all of the one list is in the other.
func hasAll(few, all any) bool {
	some, _ := few.([]any)
	many, _ := all.([]any)
	for _, one := range some {
		if !slices.ContainsFunc(many, func(other any) bool { return reflect.DeepEqual(one, other) }) {
			return false
		}
	}
	return true
}
