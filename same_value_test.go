package fermata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
)

type searchHit struct {
	Name string    `json:"name"`
	Tags []string  `json:"tags,omitempty"`
	Seen time.Time `json:"seen"`
}

type cachedHit struct {
	Name  string `json:"name"`
	Cache *int   `json:"-"`
}

// Regression: the first entry got the value of fn, later entries the decoded JSON. A question with
// the value in its text changed, and its answer was dropped.
func TestI14_ResultOfDoIsTheSameOnFirstEntryAndReEntry(t *testing.T) {
	berlin := time.FixedZone("CEST", 7200)
	five := 5
	var noList []int
	for name, do := range map[string]func(ctx context.Context) (string, error){
		"a time":                doAndPrint(time.Now()),
		"a time in a zone":      doAndPrint(time.Date(2026, 1, 2, 3, 4, 5, 6, berlin)),
		"times in a list":       doAndPrint([]time.Time{time.Now().UTC(), time.Now().In(berlin)}),
		"times in a map":        doAndPrint(map[string]time.Time{"now": time.Now()}),
		"an empty list":         doAndPrint(searchHit{Name: "a", Tags: []string{}}),
		"a pointer":             doAndPrint(&searchHit{Name: "a", Seen: time.Now()}),
		"a field not in JSON":   doAndPrint(cachedHit{"a", &five}),
		"a pointer to nil":      doAndPrint(&noList),
		"raw JSON":              doAndPrint(json.RawMessage("{ \"a\" :1}")),
		"a nil raw message":     doAndPrint(json.RawMessage(nil)),
		"an empty number":       doAndPrint(json.Number("")),
		"a big number":          doAndPrint(big.NewInt(7)),
		"an untyped time":       doAndPrint[any](time.Now()),
		"an untyped nil map":    doAndPrint[any](map[string]any(nil)),
		"an untyped struct":     doAndPrint(map[string]any{"hit": searchHit{Name: "a"}, "n": 1}),
		"approved arguments":    approveAndPrint(searchHit{Name: "a", Tags: []string{}, Seen: time.Now()}),
		"a type that is stable": doAndPrint(map[string][]int{"a": {}, "b": nil}),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, func(ctx context.Context) (string, error) {
				text, err := do(ctx)
				if err != nil {
					return "", err
				}
				if _, err := confirmContinue.Ask(ctx, "go on with "+text+"?"); err != nil {
					return "", err
				}
				return text, nil
			}, allowing)
			_, err := r.start()
			asked := string(waitsFor(t, err).Data)
			text, err := r.answer(err, true)
			if want, _ := json.Marshal("go on with " + text + "?"); err != nil || asked != string(want) {
				t.Errorf("asked %s, then it was %q, %v", asked, text, err)
			}
		})
	}
}

func doAndPrint[T any](value T) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		got, err := fermata.Do(ctx, "work", func(context.Context) (T, error) { return value, nil })
		return printed(got), err
	}
}

func approveAndPrint[T any](value T) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		approved, err := fermata.Approve(ctx, fermata.Action[T]{Name: "work", Args: value})
		return printed(approved.Args()), err
	}
}

// printed shows also what is nil and what is empty.
func printed(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.String()
	case *searchHit:
		return fmt.Sprintf("%+v", *v) + fmt.Sprintf("%#v", v.Tags)
	case *[]int:
		return fmt.Sprint(v == nil)
	case cachedHit:
		return fmt.Sprintf("%s %v", v.Name, v.Cache != nil)
	case *big.Int:
		return v.String()
	}
	return fmt.Sprintf("%v", v) + strings.ReplaceAll(fmt.Sprintf("%#v", v), "\n", "")
}

func TestNow_HasNoMonotonicPart(t *testing.T) {
	for name, now := range map[string]time.Time{"outside a run": fermata.Now(t.Context()), "in a run": nowInRun(t)} {
		if now != now.Round(0) {
			t.Errorf("%s it is %v", name, now)
		}
	}
}

func nowInRun(t *testing.T) (now time.Time) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		now = fermata.Now(ctx)
		return "", nil
	})
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	return now
}

// Regression: errors.New("boom") in a map became {} and was "" after the answer.
func TestI14_UntypedValueThatJSONWouldLoseIsRejected(t *testing.T) {
	boom := errors.New("boom")
	lossy := map[string]any{"facts": []any{1, map[string]any{"why": boom}}}
	for name, test := range map[string]struct {
		node node
		want string
	}{
		"a result of Do": {func(ctx context.Context) (string, error) {
			_, err := fermata.Do(ctx, "work", func(context.Context) (map[string]any, error) { return lossy, nil })
			return "", err
		}, `it["facts"][1]["why"] holds a errors.errorString, whose field s is not exported`},
		"the state of an interrupt": {func(ctx context.Context) (string, error) {
			return "", fermata.StatefulInterrupt(ctx, "?", lossy)
		}, `it["facts"][1]["why"] holds a errors.errorString`},
		"text in the state of an interrupt": {func(ctx context.Context) (string, error) {
			return "", fermata.StatefulInterrupt(ctx, "?", map[string]any{"name": "a\xff"})
		}, `it["name"] is not valid UTF-8`},
		"text in the info of an interrupt": {func(ctx context.Context) (string, error) {
			return "", fermata.Interrupt(ctx, []string{"ok", "a\xff"})
		}, `it[1] is not valid UTF-8`},
		"raw JSON in the state of an interrupt": {func(ctx context.Context) (string, error) {
			return "", fermata.StatefulInterrupt(ctx, "?", json.RawMessage("\"a\xff\""))
		}, "not valid UTF-8"},
		"a question": {func(ctx context.Context) (string, error) {
			_, err := askAnything.Ask(ctx, lossy)
			return "", err
		}, `it["facts"][1]["why"] holds`},
		"arguments": {func(ctx context.Context) (string, error) {
			_, err := fermata.Approve(ctx, fermata.Action[map[string]any]{Name: "work", Args: lossy})
			return "", err
		}, `it["facts"][1]["why"] holds`},
		"a target": {func(ctx context.Context) (string, error) {
			_, err := fermata.Approve(ctx, fermata.Action[string]{Name: "work", Target: func(context.Context, string) (any, error) { return boom, nil }})
			return "", err
		}, "it holds a errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newRun(t, test.node).start()
			if _, ok := errors.AsType[*fermata.EncodeError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	r := newRun(t, func(ctx context.Context) (string, error) {
		_, err := confirmContinue.Ask(ctx, "?")
		return "", err
	})
	_, err := r.start()
	id := waitsFor(t, err).ID
	_, err = r.answer(err, lossy)
	if bad, ok := errors.AsType[*fermata.AnswerError](err); !ok || bad.ID != id || !strings.Contains(err.Error(), `["why"]`) {
		t.Errorf("the answer: got %v", err)
	}
}

var askAnything = fermata.NewKind[map[string]any, string]("test-anything")
