package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
)

// wantUnchanged returns a function that fails the test if the run was written since.
func (d *driver) wantUnchanged() func(what string) {
	d.t.Helper()
	checkpoint, run := d.loadSaved()
	return func(what string) {
		d.t.Helper()
		nowCheckpoint, nowRun := d.loadSaved()
		if nowCheckpoint.Version != checkpoint.Version || fmt.Sprint(nowCheckpoint.Parts) != fmt.Sprint(checkpoint.Parts) || fmt.Sprint(nowRun) != fmt.Sprint(run) {
			d.t.Errorf("%s changed the run", what)
		}
	}
}

func testWrongAnswers(t *testing.T, s Subject) {
	d, q := startReview(t, s)
	unchanged := d.wantUnchanged()
	for _, answer := range s.Review.Wrong {
		checked, err := d.provider.CheckAnswer(t.Context(), d.run(d.store), q.ID, answer)
		d.checkRefHidden(fmt.Sprint(err))
		if _, unfit := errors.AsType[*fermata.AnswerError](err); !unfit || checked != nil {
			t.Errorf("the answer %s: %s, %v", answer, checked, err)
		}
	}
	if _, err := d.provider.CheckAnswer(t.Context(), d.run(d.store), "int_unknown", s.Review.Approve); err == nil {
		t.Error("an answer to an unknown interrupt is accepted")
	}
	checked, err := d.provider.CheckAnswer(t.Context(), d.run(d.store), q.ID, s.Review.Approve)
	if err != nil || !json.Valid(checked) {
		t.Errorf("the valid answer: %s, %v", checked, err)
	}
	unchanged("checking answers")
	d.decide(s.Review.Approve, q)
	d.completes()
	d.wantOnce(workPublish)
}

// testExpired lets an interrupt expire. That is neither an approval nor a rejection.
func testExpired(t *testing.T, s Subject) {
	d := begin(t, s, s.Review.Graph, s.Review.Input)
	d.timeout = time.Millisecond
	q := d.waits(1)[0]
	for {
		expired, err := d.store.Expire(t.Context(), time.Time{}, 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(expired) == 1 && expired[0].ID == q.ID {
			break
		}
		runtime.Gosched() // one millisecond by the clock of the store
	}
	d.claim("first")
	result, err := d.execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Applied) != 1 {
		t.Errorf("the expiry was not applied: %#v", result)
	}
	if failed, ok := result.Outcome.(provider.Failed); ok && failed.Code != "expired" {
		t.Errorf("it failed with %q", failed.Code)
	}
	d.wantNotDone(workPublish)
	d.endExecution(result)
}

func testAccounts(t *testing.T, s Subject) {
	d, q := startReview(t, s)
	other := *d
	other.account, other.ref, other.answers = "globex", "", nil
	other.create()
	theirs := other.waits(1)[0]
	unchanged := other.wantUnchanged()
	d.decide(s.Review.Approve, q)
	d.completes()
	unchanged("another account's answer")
	d.wantOnce(workPublish)
	other.decide(s.Review.Approve, theirs)
	other.completes()
	if n := d.world.count(workPublish); n != 2 {
		t.Errorf("published %d times for two", n)
	}
}

// startPair returns a run that waits for two answers.
func startPair(t *testing.T, s Subject) (*driver, []provider.Interrupt) {
	t.Helper()
	d := begin(t, s, s.Pair.Graph, s.Pair.Input)
	return d, d.waits(2)
}

func testPair(t *testing.T, s Subject) {
	for _, reversed := range []bool{false, true} {
		d, questions := startPair(t, s)
		d.wantNotDone(workLeft, workRight)
		if reversed { // people answer in any order
			slices.Reverse(questions)
		}
		d.decide(s.Pair.Answer, questions...)
		d.completes()
		d.wantOnce(workLeft, workRight)
	}
}

// testPairInParts answers one after the other, in both orders.
func testPairInParts(t *testing.T, s Subject) {
	for first := range 2 {
		d, questions := startPair(t, s)
		answered, other := questions[first], questions[1-first]
		d.decide(s.Pair.Answer, answered)
		waiting := d.waits(1)
		if !sameQuestion(other, waiting[0]) {
			t.Errorf("it waited for %+v, and now waits for %+v", other, waiting[0])
		}
		if n := d.world.count(workLeft) + d.world.count(workRight); n != 1 {
			t.Errorf("%d pieces of work were done for one answer", n)
		}
		if _, err := d.provider.CheckAnswer(t.Context(), d.run(d.store), answered.ID, s.Pair.Answer); err == nil {
			t.Error("a second answer to the same interrupt is accepted")
		}
		d.decide(s.Pair.Answer, other)
		d.completes()
		d.wantOnce(workLeft, workRight)
		if n := d.world.repeated(); n != 0 {
			t.Errorf("%d pieces of work were repeated", n)
		}
	}
}
