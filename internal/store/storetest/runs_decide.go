package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

func testOneVerdict(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	d.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	no := approve("r", "2", "i")
	no.Actor, no.Answers[0].Verdict = "bob", store.VerdictReject
	receipt := d.decide(no)
	if receipt.Result != store.ResultAlreadyDecided || receipt.Interrupt != "i" {
		t.Errorf("the second decider gets %+v", receipt)
	}
	i := d.interrupt("r", "i")
	if i.State != store.InterruptDecided || i.Verdict != store.VerdictApprove || i.DecidedBy != "ann" || i.DecidedVia != "test" || i.Source != store.SourcePerson || i.ApprovedDigest != "action-i" || string(i.Answer) != "yes" || i.DecidedAt.IsZero() {
		t.Errorf("it was decided as %+v", i)
	}
}

func testManyDeciders(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	results := make([]store.DecisionResult, 12)
	var wg sync.WaitGroup
	for n := range results {
		wg.Go(func() {
			decision := approve("r", fmt.Sprint("resume-", n), "i")
			decision.Actor = fmt.Sprint("person-", n)
			receipt, err := d.runs.Decide(d.ctx(), decision)
			if err != nil {
				t.Error(err)
			}
			results[n] = receipt.Result
		})
	}
	wg.Wait()
	won := 0
	for n, result := range results {
		switch result {
		case store.ResultAccepted:
			won++
			if by := d.interrupt("r", "i").DecidedBy; by != fmt.Sprint("person-", n) {
				t.Errorf("person-%d was accepted, but %s is stored", n, by)
			}
		case store.ResultAlreadyDecided:
		default:
			t.Errorf("decider %d gets %q", n, result)
		}
	}
	if won != 1 {
		t.Errorf("%d deciders were accepted", won)
	}
}

func testDecisionReachesRun(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	d.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	d.wantStatus("r", store.StatusReady)
	lease := d.claimed("w", "r").Lease
	// the owner crashes before it applies anything
	d.must(d.runs.Renew(d.ctx(), lease, time.Nanosecond))
	d.waitForClock(10 * time.Millisecond)
	work := d.claimed("x", "r")
	if len(work.Decided) != 1 || work.Decided[0].ID != "i" || string(work.Decided[0].Answer) != "yes" {
		t.Fatalf("the next owner gets %+v", work.Decided)
	}
	_, err := d.runs.EndExecution(d.ctx(), work.Lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i"}, Outcome: []byte("end")})
	d.must(err)
	receipt, err := d.runs.Receipt(d.ctx(), "acme", "ann", "1")
	d.must(err)
	if string(receipt.Outcome) != "end" || receipt.Result != store.ResultAccepted || receipt.Run != "r" {
		t.Errorf("the receipt is %+v", receipt)
	}
	if !d.interrupt("r", "i").Applied {
		t.Error("it is not applied")
	}
}

func testResumeID(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	first := d.decide(approve("r", "1", "i1"))
	again := d.decide(approve("r", "1", "i1"))
	if again.Result != first.Result || !again.At.Equal(first.At) || !again.Replayed || first.Replayed {
		t.Errorf("first %+v, then %+v", first, again)
	}
	d.wantResult(approve("r", "1"), store.ResultAccepted) // a repetition needs only the same digest
	other := approve("r", "1", "i2")
	other.BodyDigest = "another body"
	_, err := d.runs.Decide(d.ctx(), other)
	d.wantErr(err, store.ErrResumeIDReused)
	if state := d.interrupt("r", "i2").State; state != store.InterruptPending {
		t.Errorf("a reused id has decided something: %s", state)
	}
	// an actor can neither use nor read the ids of others
	other.Actor, other.BodyDigest = "bob", "body"
	d.wantResult(other, store.ResultAccepted)
	d.wantResult(approve("r", "refused", "unknown"), store.ResultNotFound)
	d.wantResult(approve("r", "refused", "unknown"), store.ResultNotFound)
	_, err = d.runs.Receipt(d.ctx(), "acme", "ann", "never")
	d.wantErr(err, store.ErrNotFound)
	_, err = d.runs.Receipt(d.ctx(), "acme", "carl", "1")
	d.wantErr(err, store.ErrNotFound)
}

func testDuplicateDecisions(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	receipts := make([]store.DecisionReceipt, 12)
	var wg sync.WaitGroup
	for n := range receipts {
		wg.Go(func() {
			var err error
			if receipts[n], err = d.runs.Decide(d.ctx(), approve("r", "1", "i")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first := 0
	for _, receipt := range receipts {
		if receipt.Result != store.ResultAccepted || !receipt.At.Equal(receipts[0].At) {
			t.Errorf("a twin gets %+v", receipt)
		}
		if !receipt.Replayed {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d duplicates were the first", first)
	}
}

func testAllOrNone(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	d.wantResult(approve("r", "1", "i1", "unknown"), store.ResultNotFound)
	if i := d.interrupt("r", "i1"); i.State != store.InterruptPending {
		t.Errorf("a part of a decision was applied: %+v", i)
	}
	d.wantStatus("r", store.StatusWaiting)
	d.wantResult(approve("r", "2", "i1", "i2"), store.ResultAccepted)
	if work := d.claimed("w", "r"); len(work.Decided) != 2 {
		t.Errorf("claimed %+v", work)
	}
}

func testRefusals(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	_, err := d.runs.Decide(d.ctx(), approve("r", "0"))
	d.wantErr(err, store.ErrInvalid)
	d.wantResult(approve("r", "1", "unknown"), store.ResultNotFound)
	d.wantResult(approve("unknown", "2", "i"), store.ResultNotFound)
	_, err = d.runs.Receipt(d.ctx(), "acme", approve("unknown", "2", "i").Actor, "2")
	d.wantErr(err, store.ErrNotFound) // it would stay forever
	seen := approve("r", "3", "i")
	seen.Answers[0].ShownDigest = "something else"
	d.wantResult(seen, store.ResultDigestMismatch)
	d.wantStatus("r", store.StatusWaiting)
	blind := approve("r", "4", "i")
	blind.Answers[0].ShownDigest = "" // a client that does not send what it showed
	d.wantResult(blind, store.ResultAccepted)
}

func testNotApproved(t *testing.T, d *runsTester) {
	d.waiting("r", "yes", "no", "open", "answer")
	d.wantResult(approve("r", "1", "yes"), store.ResultAccepted)
	no := approve("r", "2", "no")
	no.Answers[0].Verdict, no.Answers[0].ApprovedDigest = store.VerdictReject, ""
	d.wantResult(no, store.ResultAccepted)
	answer := approve("r", "3", "answer")
	answer.Answers[0].Verdict, answer.Answers[0].ApprovedDigest = store.VerdictAnswer, ""
	d.wantResult(answer, store.ResultAccepted)
	lease := d.claimed("w", "r").Lease
	for name, effect := range map[string]store.NewEffect{
		"rejected":        {Interrupt: "no", Attempt: 1, ActionDigest: "action-no"},
		"not decided":     {Interrupt: "open", Attempt: 1, ActionDigest: "action-open"},
		"only answered":   {Interrupt: "answer", Attempt: 1, ActionDigest: "action-answer"},
		"unknown":         {Interrupt: "unknown", Attempt: 1, ActionDigest: "action-yes"},
		"other arguments": {Interrupt: "yes", Attempt: 1, ActionDigest: "action-other"},
		"no digest":       {Interrupt: "no", Attempt: 1},
	} {
		if _, begun, err := d.runs.BeginEffect(d.ctx(), lease, effect); !errors.Is(err, store.ErrNotApproved) || begun {
			t.Errorf("%s: %v, %v", name, begun, err)
		}
	}
	if _, begun, err := d.runs.BeginEffect(d.ctx(), lease, store.NewEffect{Interrupt: "yes", Attempt: 1, ActionDigest: "action-yes", IdempotencyKey: "k"}); err != nil || !begun {
		t.Errorf("approved: %v, %v", begun, err)
	}
}

func testEffectBegunOnce(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	d.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	lease := d.claimed("w", "r").Lease
	effect := store.NewEffect{Interrupt: "i", Attempt: 1, ActionDigest: "action-i", IdempotencyKey: "k"}
	line, begun, err := d.runs.BeginEffect(d.ctx(), lease, effect)
	d.must(err)
	if !begun || line.State != store.EffectStarted || line.Fence != lease.Fence || line.IdempotencyKey != "k" {
		t.Fatalf("begun %v: %+v", begun, line)
	}
	d.must(d.runs.Renew(d.ctx(), lease, time.Nanosecond)) // it crashes before the end
	d.waitForClock(10 * time.Millisecond)
	next := d.claimed("x", "r").Lease
	line, begun, err = d.runs.BeginEffect(d.ctx(), next, effect)
	d.must(err)
	if begun || line.State != store.EffectStarted || line.Fence != lease.Fence {
		t.Fatalf("the next owner begins it again: %v, %+v", begun, line)
	}
	d.must(d.runs.EndEffect(d.ctx(), store.EffectEnd{Account: "acme", Interrupt: "i", Attempt: 1, State: store.EffectSucceeded, Receipt: []byte("receipt")}))
	d.must(d.runs.EndEffect(d.ctx(), store.EffectEnd{Account: "acme", Interrupt: "i", Attempt: 1, State: store.EffectFailed, Error: "too late"}))
	line, begun, err = d.runs.BeginEffect(d.ctx(), next, effect)
	d.must(err)
	if begun || line.State != store.EffectSucceeded || string(line.Receipt) != "receipt" || line.Error != "" || line.Ended.IsZero() {
		t.Errorf("it ended as %+v", line)
	}
}

func testEndUnknownEffect(_ *testing.T, d *runsTester) {
	d.readyRun("r")
	_, _, err := d.runs.BeginEffect(d.ctx(), d.claimed("w", "r").Lease, store.NewEffect{Interrupt: "i-r", Attempt: 1, ActionDigest: "action-i-r", IdempotencyKey: "k"})
	d.must(err)
	d.wantErr(d.runs.EndEffect(d.ctx(), store.EffectEnd{Account: "acme", Interrupt: "i-r", Attempt: 2, State: store.EffectSucceeded}), store.ErrNotFound)
	d.wantErr(d.runs.EndEffect(d.ctx(), store.EffectEnd{Account: "other", Interrupt: "i-r", Attempt: 1, State: store.EffectSucceeded}), store.ErrNotFound)
}

func testDeadline(t *testing.T, d *runsTester) {
	open := newInterrupts("i")
	open[0].Timeout = time.Nanosecond
	_, err := d.runs.EndExecution(d.ctx(), d.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open})
	d.must(err)
	d.waitForClock(10 * time.Millisecond)
	d.wantResult(approve("r", "1", "i"), store.ResultExpired) // whether or not Expire has run
	d.wantStatus("r", store.StatusWaiting)
}

func testExpiry(t *testing.T, d *runsTester) {
	open := newInterrupts("i1", "i2", "i3")
	open[0].Timeout, open[1].Timeout = time.Nanosecond, time.Nanosecond
	_, err := d.runs.EndExecution(d.ctx(), d.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open})
	d.must(err)
	d.waitForClock(10 * time.Millisecond)
	total := 0
	for range 3 {
		expired, err := d.runs.Expire(d.ctx(), time.Time{}, 1, nil)
		d.must(err)
		total += len(expired)
		for _, i := range expired {
			if i.Verdict != store.VerdictExpire || i.Source != store.SourceClock || i.State != store.InterruptDecided || i.ApprovedDigest != "" {
				t.Errorf("expired as %+v", i)
			}
		}
	}
	if total != 2 {
		t.Errorf("%d expired", total)
	}
	d.wantResult(approve("r", "1", "i1"), store.ResultAlreadyDecided)
	work := d.claimed("w", "r")
	if len(work.Decided) != 2 {
		t.Errorf("claimed %+v", work)
	}
	if _, _, err := d.runs.BeginEffect(d.ctx(), work.Lease, store.NewEffect{Interrupt: "i1", Attempt: 1, ActionDigest: "action-i1"}); !errors.Is(err, store.ErrNotApproved) {
		t.Errorf("an effect after expiry: %v", err)
	}
	if state := d.interrupt("r", "i3").State; state != store.InterruptPending {
		t.Errorf("one without a deadline is %s", state)
	}
}

func testExpireUntil(t *testing.T, d *runsTester) {
	open := newInterrupts("i1", "i2")
	open[0].Timeout, open[1].Timeout = time.Millisecond, 2*time.Hour
	_, err := d.runs.EndExecution(d.ctx(), d.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open})
	d.must(err)
	d.waitForClock(10 * time.Millisecond)
	due := d.interrupt("r", "i1").Deadline
	for _, until := range []time.Time{due.Add(-time.Millisecond), due.Add(time.Hour)} {
		expired, err := d.runs.Expire(d.ctx(), until, 10, nil)
		d.must(err)
		if over := !until.Before(due); len(expired) > 1 || (len(expired) == 1) != over {
			t.Errorf("until %v of the deadline: %+v", until.Sub(due), expired)
		}
	}
	if expired, err := d.runs.Expire(d.ctx(), due.Add(1000*time.Hour), 10, nil); err != nil || len(expired) > 0 {
		t.Errorf("before the deadline: %+v, %v", expired, err)
	}
}

func testCancelRun(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	d.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	lease := d.claimed("w", "r").Lease
	run, err := d.runs.Cancel(d.ctx(), "acme", "r", store.StatusCancelled, nil, store.Writes{})
	d.must(err)
	if run.Status != store.StatusCancelled || run.Fence <= lease.Fence {
		t.Errorf("cancelled: %+v", run)
	}
	_, _, err = d.runs.BeginEffect(d.ctx(), lease, store.NewEffect{Interrupt: "i1", Attempt: 1, ActionDigest: "action-i1"})
	d.wantErr(err, store.ErrFenced)
	d.wantResult(approve("r", "2", "i2"), store.ResultWithdrawn)
	if work := d.claim("w"); work != nil {
		t.Errorf("claimed %+v, which has ended", work)
	}
	_, err = d.runs.Cancel(d.ctx(), "acme", "r", store.StatusCancelled, nil, store.Writes{})
	d.wantErr(err, store.ErrNotFound)
}

// A caller that cancels a run must know its pending interrupts; otherwise nothing changes.
func testCancelChecksWaits(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	d.waiting("r2", "b", "a")
	d.wantResult(approve("r", "1", "i1"), store.ResultAccepted) // it waits only for i2
	before := d.history("key-r", "r")
	line := writesOf("cancelled")
	for _, known := range [][]string{{}, {"i1"}, {"i3"}, {"i2", "i1"}, {"i2", "i3"}, {"i2", "i2"}} {
		_, err := d.runs.Cancel(d.ctx(), "acme", "r", store.StatusCancelled, known, line)
		d.wantErr(err, store.ErrStale)
	}
	if after := d.history("key-r", "r"); after != before {
		t.Errorf("a rejected Cancel has changed something:\n%s\n%s", before, after)
	}
	_, err := d.runs.Cancel(d.ctx(), "acme", "unknown", store.StatusCancelled, []string{}, line)
	d.wantErr(err, store.ErrNotFound)
	_, err = d.runs.Cancel(d.ctx(), "other", "r", store.StatusCancelled, []string{}, line)
	d.wantErr(err, store.ErrNotFound)
	for id, waits := range map[string][]string{"r": {"i2"}, "r2": {"a", "b"}} {
		if run, err := d.runs.Cancel(d.ctx(), "acme", id, store.StatusCancelled, waits, line); err != nil || run.Status != store.StatusCancelled {
			t.Errorf("with the pending interrupts: %+v, %v", run, err)
		}
	}
}

// history returns everything that is stored about a run.
func (d *runsTester) history(key, id string) string {
	d.t.Helper()
	run, err := d.runs.Get(d.ctx(), "acme", key)
	d.must(err)
	asked, err := d.runs.Interrupts(d.ctx(), "acme", id)
	d.must(err)
	return fmt.Sprintf("%+v %+v", run, asked)
}

func testRunAccounts(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	foreign := approve("r", "1", "i")
	foreign.Account = "other"
	d.wantResult(foreign, store.ResultNotFound)
	_, err := d.runs.Get(d.ctx(), "other", "key-r")
	d.wantErr(err, store.ErrNotFound)
	_, err = d.runs.Cancel(d.ctx(), "other", "r", store.StatusCancelled, nil, store.Writes{})
	d.wantErr(err, store.ErrNotFound)
	list, err := d.runs.Interrupts(d.ctx(), "other", "r")
	if err != nil || len(list) > 0 {
		t.Errorf("another account sees %+v, %v", list, err)
	}
	work, err := d.runs.Claim(d.ctx(), store.Claim{Owner: "w", Lease: leaseDuration, Account: "other", Run: "r"})
	if err != nil || work != nil {
		t.Errorf("another account claims %+v, %v", work, err)
	}
	same := newRun("r")
	same.Account = "other"
	_, err = d.runs.Create(d.ctx(), same)
	d.must(err)
	d.wantStatus("r", store.StatusWaiting)
}

// testOneOwner lets many workers share the runs; each run must have one owner at a time, with a
// higher fence each time.
func testOneOwner(t *testing.T, d *runsTester) {
	const runs, rounds = 5, 6
	for n := range runs {
		d.waiting(fmt.Sprint("r", n), fmt.Sprintf("r%d-0", n))
		d.wantResult(approve(fmt.Sprint("r", n), fmt.Sprintf("resume-%d-0", n), fmt.Sprintf("r%d-0", n)), store.ResultAccepted)
	}
	var mu sync.Mutex
	held, fences, finished := map[string]bool{}, map[string]int64{}, 0
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for {
				mu.Lock()
				over := finished == runs
				mu.Unlock()
				if over || t.Failed() {
					return
				}
				work, err := d.runs.Claim(d.ctx(), store.Claim{Owner: fmt.Sprint("w", w), Lease: leaseDuration})
				if err != nil {
					t.Error(err)
					return
				}
				if work == nil {
					continue
				}
				id := work.Run.ID
				mu.Lock()
				if held[id] || work.Lease.Fence <= fences[id] {
					t.Errorf("%s has two owners, or its fence is %d after %d", id, work.Lease.Fence, fences[id])
				}
				held[id], fences[id] = true, work.Lease.Fence
				mu.Unlock()
				round := int(work.Lease.Fence) - 1
				end := store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{work.Decided[0].ID}}
				next := fmt.Sprintf("%s-%d", id, round)
				if round < rounds {
					end.Status, end.Open = store.StatusWaiting, newInterrupts(next)
				}
				mu.Lock()
				held[id] = false
				if round >= rounds {
					finished++
				}
				mu.Unlock()
				if _, err := d.runs.EndExecution(d.ctx(), work.Lease, end); err != nil {
					t.Error(err)
					return
				}
				if round < rounds {
					if receipt, err := d.runs.Decide(d.ctx(), approve(id, "resume-"+next, next)); err != nil || receipt.Result != store.ResultAccepted {
						t.Errorf("%+v, %v", receipt, err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// An approval without an action digest would permit no effect: the approver would get a success,
// and nothing would happen.
func testApproveNeedsActionDigest(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	vague := approve("r", "1", "i1", "i2")
	vague.Answers[1].ApprovedDigest = ""
	_, err := d.runs.Decide(d.ctx(), vague)
	d.wantErr(err, store.ErrInvalid)
	for _, id := range []string{"i1", "i2"} {
		if state := d.interrupt("r", id).State; state != store.InterruptPending {
			t.Errorf("%s is %s", id, state)
		}
	}
	d.wantStatus("r", store.StatusWaiting)
	// the first call recorded nothing
	d.wantResult(approve("r", "1", "i1", "i2"), store.ResultAccepted)
	// a repetition gets this receipt
	d.wantResult(vague, store.ResultAccepted)
}

// An interrupt without an action is approved without a digest, and that permits no effect.
func testApproveWithoutAction(t *testing.T, d *runsTester) {
	open := newInterrupts("none")
	open[0].ActionDigest = ""
	_, err := d.runs.EndExecution(d.ctx(), d.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open})
	d.must(err)
	yes := approve("r", "1", "none")
	yes.Answers[0].ApprovedDigest = ""
	d.wantResult(yes, store.ResultAccepted)
	_, _, err = d.runs.BeginEffect(d.ctx(), d.claimed("b", "r").Lease, store.NewEffect{Interrupt: "none", Attempt: 1})
	d.wantErr(err, store.ErrNotApproved)
}
