package admin

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
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// ResumableCheck is a run that is not over, and whether this program could go on with it.
type ResumableCheck struct {
	store.Run // without what is sealed
	// Err says why not; nil if it could.
	Err error
}

// CheckResumable looks at every run that is not over, of all accounts, and says whether this
// program could go on with it, as far as that can be known without doing so; see
// [provider.Checker]. It runs and changes nothing, while others may.
func (ad *Admin) CheckResumable(ctx context.Context) iter.Seq2[ResumableCheck, error] {
	return func(yield func(ResumableCheck, error) bool) {
		err := ad.periodic.EachAccount(ctx, func(account string) error {
			if !ad.checkAccount(ctx, account, yield) {
				return errStopIteration
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopIteration) {
			yield(ResumableCheck{}, err)
		}
	}
}

// errStopIteration ends an iteration.
var errStopIteration = errors.New("executor: enough")

func (ad *Admin) checkAccount(ctx context.Context, account string, yield func(ResumableCheck, error) bool) bool {
	filter := store.RunFilter{Status: []store.Status{store.StatusReady, store.StatusRunning, store.StatusWaiting, store.StatusParked}}
	for run, err := range ad.docs.EachRun(ctx, account, filter) {
		if err != nil {
			yield(ResumableCheck{}, err)
			return false
		}
		if !yield(ResumableCheck{Run: run, Err: ad.checkRun(ctx, run)}, nil) {
			return false
		}
	}
	return true
}

func (ad *Admin) checkRun(ctx context.Context, run store.Run) error {
	p, err := ad.providers.Of(run)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(p.Graphs(), func(g provider.Graph) bool { return g.Name == run.Graph }) {
		return fmt.Errorf("%w: this program has no graph %q", errs.ErrGraphNotFound, run.Provider+":"+run.Graph)
	}
	checker, ok := p.(provider.Checker)
	if !ok {
		return nil
	}
	full, err := ad.store.Get(ctx, run.Account, run.StateKey) // a list has not what is sealed
	if docs.IsNotFound(err) || err == nil && full.ID != run.ID {
		return nil // it is over by now
	}
	if err != nil {
		return err
	}
	named, err := ad.providers.RunView(full, ad.store)
	if err != nil {
		return err
	}
	if err := checker.CheckResumable(ctx, named); err != nil {
		return err
	}
	return ad.checkAnswerSchemas(ctx, run)
}

// checkAnswerSchemas looks whether the open questions of a run are such as this program would ask.
func (ad *Admin) checkAnswerSchemas(ctx context.Context, run store.Run) error {
	asked, err := ad.store.Interrupts(ctx, run.Account, run.ID)
	if err != nil {
		return err
	}
	for _, i := range asked {
		kind, known := fermata.LookupKind(i.Kind)
		if i.State == store.InterruptPending && known && len(i.AnswerSchema) > 0 && !acceptsAll(kind.AnswerSchema(), i.AnswerSchema) {
			return fmt.Errorf("%w: %s asks a question of the kind %q", errs.ErrAnswerSchemaChanged, i.Address, i.Kind)
		}
	}
	return nil
}

// acceptsAll reports whether every answer of the form that a schema was also has the form that it
// is, however both are written. It knows of fields that were added and may be left out, of fields
// that have become such, and of more choices; whatever else differs is another form.
func acceptsAll(is, was []byte) bool {
	var x, y any
	return json.Unmarshal(is, &x) == nil && json.Unmarshal(was, &y) == nil && accepts(x, y)
}

func accepts(is, was any) bool {
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
			same = accepts(now[word], before[word])
		case "properties":
			same = acceptsFields(now[word], before[word], before["additionalProperties"] == false)
		case "required":
			same = containsAll(now[word], before[word])
		case "enum":
			same = containsAll(before[word], now[word]) && before[word] != nil
		default:
			same = reflect.DeepEqual(now[word], before[word])
		}
		if !same {
			return false
		}
	}
	return true
}

// acceptsFields compares the fields of objects. One that is new says nothing to older answers if
// those could have no others.
func acceptsFields(is, was any, closed bool) bool {
	now, _ := is.(map[string]any)
	before, _ := was.(map[string]any)
	for name, old := range before {
		if field, there := now[name]; !there || !accepts(field, old) {
			return false
		}
	}
	return closed || len(now) == len(before)
}

// containsAll reports whether all of the one list is in the other.
func containsAll(few, all any) bool {
	some, _ := few.([]any)
	many, _ := all.([]any)
	for _, one := range some {
		if !slices.ContainsFunc(many, func(other any) bool { return reflect.DeepEqual(one, other) }) {
			return false
		}
	}
	return true
}
