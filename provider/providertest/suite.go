package providertest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/provider"
)

// Run tests a provider. It skips a part only if the provider does not declare the capability.
func Run(t *testing.T, subject Subject) {
	s := subject.complete()
	can := s.New(t, newWorld()).Capabilities()
	run := func(name string, able bool, fn func(*testing.T, Subject)) {
		t.Run(name, func(t *testing.T) {
			if !able {
				t.Skip("the provider does not declare the capability")
			}
			fn(t, s)
		})
	}
	run("Names", true, testNames)
	run("Review", true, testReview)
	run("Review revised", !s.Review.SingleQuestion, testRevise)
	run("The same again", true, testRepeatedExecution)
	run("I13 wrong answers", true, testWrongAnswers)
	run("I11 expired", true, testExpired)
	run("I8 accounts", true, testAccounts)
	run("Many at once", true, testManyAtOnce)
	run("Unknown graph", true, testUnknownGraph)
	run("Bad input", true, testBadInput)
	run("Delete", true, testDelete)
	run("Cancelled", true, testCancelled)
	run("Goroutines", true, testGoroutines)
	run("I14 crash", true, testCrash)
	run("I16 taken over while it drafts", !s.Review.NoDraft, testTakenOverAtDraft)
	run("I16 taken over while it publishes", true, testTakenOverAtPublish)

	run("Pair", can.Parallel, testPair)
	run("Pair in parts", can.Parallel && can.PartialResume, testPairInParts)
	run("I14 pair, crash", can.Parallel, testPairCrash)

	run("I4 effect", can.Effects, testEffect)
	run("I4 effect rejected", can.Effects, testEffectRejected)
	run("I4 effect, crash", can.Effects, testEffectCrash)
	run("I16 effect taken over", can.Effects, testEffectTakenOver)
}

// startReview returns a run of the content review that waits for the first time.
func startReview(t *testing.T, s Subject) (*driver, provider.Interrupt) {
	t.Helper()
	d := begin(t, s, s.Review.Graph, s.Review.Input)
	return d, d.waits(1)[0]
}

func (d *driver) wantOnce(names ...string) {
	d.t.Helper()
	for _, name := range names {
		if n := d.world.count(name); n != 1 {
			d.t.Errorf("%q was done %d times", name, n)
		}
	}
}

func (d *driver) wantNotDone(names ...string) {
	d.t.Helper()
	for _, name := range names {
		if n := d.world.count(name); n != 0 {
			d.t.Errorf("%q was done %d times", name, n)
		}
	}
}

// wantDrafted checks the work before the first interrupt.
func (d *driver) wantDrafted() {
	d.t.Helper()
	if !d.subject.Review.NoDraft {
		d.wantOnce(workDraft)
	}
}

func testReview(t *testing.T, s Subject) {
	d, q := startReview(t, s)
	d.wantDrafted()
	d.wantNotDone(workPublish)
	d.decide(s.Review.Approve, q)
	result, err := d.execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(result.Applied, []string{q.ID}) {
		t.Errorf("the answer was not applied: %v", result.Applied)
	}
	d.endExecution(result)
	if _, ok := result.Outcome.(provider.Completed); !ok {
		t.Errorf("it returned %#v", result.Outcome)
	}
	d.wantDrafted()
	d.wantOnce(workPublish)
}

func testRevise(t *testing.T, s Subject) {
	d, first := startReview(t, s)
	interrupt := map[string]bool{first.ID: true}
	q := first
	for range 2 {
		d.decide(s.Review.Revise, q)
		q = d.waits(1)[0]
		if interrupt[q.ID] {
			t.Fatalf("another interrupt has the id %s", q.ID)
		}
		interrupt[q.ID] = true
		d.wantNotDone(workPublish)
	}
	d.decide(s.Review.Approve, q)
	d.completes()
	d.wantOnce(workPublish)
}

// testRepeatedExecution repeats an execution, as after a crash between the end of an execution and
// saving its result.
func testRepeatedExecution(t *testing.T, s Subject) {
	d := begin(t, s, s.Review.Graph, s.Review.Input)
	first, err := d.execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := d.repeat(t)
	if !sameQuestions(first, second) {
		t.Fatalf("first it asks %#v, then %#v", first.Outcome, second.Outcome)
	}
	d.wantDrafted()
	d.endExecution(second)
	q := d.open[0]
	if !s.Review.SingleQuestion {
		d.decide(s.Review.Revise, q)
		if first, err = d.execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		second = d.repeat(t)
		if !sameQuestions(first, second) || !slices.Equal(first.Applied, second.Applied) {
			t.Fatalf("first it returned %#v, then %#v", first, second)
		}
		d.endExecution(second)
		q = d.open[0]
	}
	d.decide(s.Review.Approve, q)
	if first, err = d.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	second = d.repeat(t)
	was, _ := first.Outcome.(provider.Completed)
	is, ok := second.Outcome.(provider.Completed)
	if !ok || !bytes.Equal(was.Output, is.Output) || was.Content != is.Content || !slices.Equal(first.Applied, second.Applied) {
		t.Errorf("first it returned %#v, then %#v", first, second)
	}
	d.wantDrafted()
	d.wantOnce(workPublish)
	if n := d.world.repeated(); n != 0 {
		t.Errorf("%d pieces of work were repeated", n)
	}
}

// repeat executes once more in a new process, with the same answers.
func (d *driver) repeat(t *testing.T) provider.Result {
	t.Helper()
	d.takeOver(t)
	result, err := d.execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// sameQuestions compares the public parts.
func sameQuestions(a, b provider.Result) bool {
	was, ok := a.Outcome.(provider.Waiting)
	is, also := b.Outcome.(provider.Waiting)
	if !ok || !also || len(was.Interrupts) != len(is.Interrupts) {
		return false
	}
	for i, q := range was.Interrupts {
		if !sameQuestion(q, is.Interrupts[i]) {
			return false
		}
	}
	return true
}

func sameQuestion(a, b provider.Interrupt) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.Address.Equal(b.Address) && bytes.Equal(a.Data, b.Data) && bytes.Equal(a.AnswerSchema, b.AnswerSchema) && a.Timeout == b.Timeout
}

func testManyAtOnce(t *testing.T, s Subject) {
	first, _ := startReview(t, s)
	ids := make(map[string]string)
	runs := s.runs(8)
	for n := range runs {
		d := *first
		d.id, d.key = fmt.Sprint("run_", n+2), fmt.Sprint("demo-", n+2)
		d.answers, d.ref, d.attempt = nil, "", 0
		d.create()
		q := d.waits(1)[0]
		if other := ids[q.ID]; other != "" {
			t.Fatalf("%s and %s have the same id", other, d.id)
		}
		ids[q.ID] = d.id
		d.decide(s.Review.Approve, q)
		t.Run(d.id, func(t *testing.T) {
			t.Parallel()
			d.t = t
			d.completes()
		})
	}
	t.Cleanup(func() {
		if n := first.world.count(workPublish); n != runs && !t.Failed() {
			t.Errorf("published %d times", n)
		}
	})
}
