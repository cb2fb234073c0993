package fermata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
)

// row is what a database driver returns for an unknown table.
type row = map[string]any

const large = 9007199254740993 // float64 cannot represent it

var confirmContinue = fermata.NewKind[string, any]("test-go-on")

// A program that read row 9007199254740993 must not continue with row 9007199254740992 after an
// answer, and code that depends on the type of a number must not take another path.
func TestI14_AnUntypedResultIsTheSameOnEachEntry(t *testing.T) {
	for name, look := range map[string]func(ctx context.Context) (any, error){
		"of Do": func(ctx context.Context) (any, error) {
			return fermata.Do(ctx, "look", func(context.Context) (row, error) { return row{"id": large, "at": []int{1}}, nil })
		},
		"of Do, in a struct": func(ctx context.Context) (any, error) {
			type found struct{ Rows []row }
			return fermata.Do(ctx, "look", func(context.Context) (*found, error) { return &found{[]row{{"id": large}}}, nil })
		},
		"of an effect": func(ctx context.Context) (any, error) {
			yes, err := fermata.Approve(ctx, fermata.Action[row]{Name: "insert", Args: row{"id": large}})
			if err != nil {
				return nil, err
			}
			return fermata.Effect(ctx, yes, func(_ context.Context, r row, _ string) (row, error) { return row{"id": large, "args": r["id"]}, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			r := newRun(t, func(ctx context.Context) (string, error) {
				found, err := look(ctx)
				if err != nil {
					return "", err
				}
				data, err := json.Marshal(found)
				seen = append(seen, fmt.Sprintf("%#v %s", found, data))
				if err != nil {
					return "", err
				}
				_, err = confirmContinue.Ask(ctx, "go on?")
				return "", err
			})
			_, err := r.start()
			if waitsFor(t, err).Kind == fermata.Approval.Name() {
				_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
			}
			if _, err = r.answer(err, true); err != nil {
				t.Fatal(err)
			}
			if len(seen) != 2 || seen[0] != seen[1] || !strings.Contains(seen[0], fmt.Sprint(`"id":`, large)) {
				t.Errorf("it was %q", seen)
			}
		})
	}
}

func TestKind_AnUntypedAnswerIsExact(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		said, err := confirmContinue.Ask(ctx, "which one?")
		return fmt.Sprint(said), err
	})
	_, err := r.start()
	if out, err := r.answer(err, json.RawMessage(`9007199254740993`)); err != nil || out != "9007199254740993" {
		t.Errorf("%s, %v", out, err)
	}
}

func TestGetInterruptState_AnUntypedStateIsExact(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		waited, _, state := fermata.GetInterruptState[row](ctx)
		if !waited {
			return "", fermata.StatefulInterrupt(ctx, "go on?", row{"id": large})
		}
		return fmt.Sprint(state["id"]), nil
	})
	_, err := r.start()
	if out, err := r.answer(err, nil); err != nil || out != "9007199254740993" {
		t.Errorf("%s, %v", out, err)
	}
}

func TestInfoAs_UntypedNumberIsExact(t *testing.T) {
	stored := &fermata.InterruptCtx{Data: json.RawMessage(`{"id":9007199254740993}`)}
	if info, err := fermata.InfoAs[row](stored); err != nil || fmt.Sprint(info["id"]) != "9007199254740993" {
		t.Errorf("%v, %v", info, err)
	}
}
