package fermata_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
)

type page struct {
	Text string
	size int
}

type stampedPage struct {
	time.Time
	Text string
}

// The result of Do must be the same on the first entry and on later ones: otherwise code may depend
// on a part that is lost after an answer, and tests do not find it.
func TestDo_ResultThatDoesNotRoundTripIsRejected(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(ctx context.Context, done *calls) error
		want string
		done int
	}{
		"a field that is not exported": {callDo(page{"a", 1}), "size is not exported", 0},
		"an interface":                 {callDo[error](nil), "use a concrete type", 0},
		"JSON of an embedded type":     {callDo([]stampedPage{{Text: "a"}}), "Text would be lost", 0},
		"text that is not UTF-8":       {callDo("a\xff"), "not valid UTF-8", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var done calls
			r := newRun(t, func(ctx context.Context) (string, error) { return "", test.do(ctx, &done) })
			_, err := r.start()
			refused, ok := errors.AsType[*fermata.EncodeError](err)
			if !ok || !strings.Contains(refused.Error(), test.want) || !strings.Contains(refused.Value, "do:work") {
				t.Errorf("got %v", err)
			}
			if done.n != test.done {
				t.Errorf("it was done %d times, want %d", done.n, test.done)
			}
		})
	}
}

func callDo[T any](result T) func(context.Context, *calls) error {
	return func(ctx context.Context, done *calls) error {
		_, err := fermata.Do(ctx, "work", func(context.Context) (T, error) {
			done.add()
			return result, nil
		})
		return err
	}
}

func TestI4_EffectWithUnencodableReceiptIsNotPerformed(t *testing.T) {
	var done calls
	r := newRun(t, func(ctx context.Context) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[string]{Name: "print", Args: "a"})
		if err != nil {
			return "", err
		}
		_, err = fermata.Effect(ctx, ok, func(context.Context, string, string) (page, error) { done.add(); return page{"a", 1}, nil })
		return "", err
	})
	_, err := r.start()
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
	if _, ok := errors.AsType[*fermata.EncodeError](err); !ok || done.n != 0 {
		t.Errorf("done %d times, %v", done.n, err)
	}
}

func TestStatefulInterrupt_UnencodableStateReturnsErrorWithoutInterrupt(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		return "", fermata.StatefulInterrupt(ctx, "ok?", &page{"a", 1})
	})
	_, err := r.start()
	if _, ok := errors.AsType[*fermata.EncodeError](err); !ok {
		t.Errorf("got %v", err)
	}
}

// A digest identifies one action, and an effect gets its arguments from the approved JSON. Two file
// names that differ in a byte that JSON cannot represent would have the same digest, and a part
// that JSON omits would be missing only after the approval.
func TestI6_ArgumentsThatJSONWouldChangeAreRejected(t *testing.T) {
	for name, test := range map[string]struct {
		approve func(ctx context.Context) error
		want    string
	}{
		"text that is not UTF-8":       {approving(map[string]string{"file": "a\xff"}), "not valid UTF-8"},
		"a field that is not exported": {approving(page{"a", 1}), "size is not exported"},
		"JSON that cannot be decoded":  {approving([]cents{5}), "cannot read it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newRun(t, func(ctx context.Context) (string, error) { return "", test.approve(ctx) }).start()
			refused, ok := errors.AsType[*fermata.EncodeError](err)
			if !ok || !strings.Contains(refused.Error(), test.want) || !strings.Contains(refused.Value, "delete") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// cents has a text form for people.
type cents int

func (c cents) MarshalText() ([]byte, error) { return []byte(strconv.Itoa(int(c)) + " cents"), nil }

func approving[T any](args T) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := fermata.Approve(ctx, fermata.Action[T]{Name: "delete", Args: args})
		return err
	}
}
