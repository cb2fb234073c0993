package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

// Runs tests an implementation of [store.Runs]. open is called once per test and returns an empty
// store; it registers its cleanup with t.Cleanup.
func Runs(t *testing.T, open func(t *testing.T) store.Runs) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, d *runsTester)
	}{
		{"Create_OneActiveRunPerStateKey", testCreateRun},
		{"Create_StartsTheNextGeneration", testGenerations},
		{"Claim_TakesReadyRunsInOrder", testClaimOrder},
		{"Claim_SelectedRun", testClaimOne},
		{"Claim_NothingWhileTheLeaseIsValid", testClaimLease},
		{"Claim_CountsReleasesAndTakeovers", testAttempts},
		{"Release_MakesTheRunReady", testRelease},
		{"Release_DelaysTheNextClaim", testDelay},
		{"Release_ParksUntilRetry", testPark},
		{"Retry_OnlyParkedAndFailedRuns", testRetry},
		{"Retry_FailedRunUnlessItsStateKeyHasANewerOne", testRetryFailed},
		{"Retry_FailedRunKeepsCheckpointAndAnswers", testRetryFailedKeeps},
		{"List_NewestFirstWithoutSealedValues", testList},
		{"List_AppliesTheFilter", testListFilter},
		{"List_InPages", testListPages},
		{"List_DefaultLimitIsOneHundred", testListLimit},
		{"I16_EveryWriteOfAFencedOwnerIsRejected", testFenced},
		{"EndExecution_ShowsOpenInterruptsAndWithdrawsOthers", testEndExecutionShowsInterrupts},
		{"EndExecution_ReadyAfterAConcurrentDecision", testLostWakeUp},
		{"EndExecution_SavesTheCheckpoint", testEndExecutionSaves},
		{"I16_EndExecutionOnAnotherVersionChangesNothing", testEndExecutionFencedSavesNothing},
		{"EndExecution_DropsTheCheckpoint", testEndExecutionDrops},
		{"I1_OneVerdictPerInterrupt", testOneVerdict},
		{"I1_OneOfManyDecidersWins", testManyDeciders},
		{"I2_AnAcceptedDecisionReachesTheNextOwner", testDecisionReachesRun},
		{"I3_AResumeIDHasOneReceipt", testResumeID},
		{"I3_DuplicatesGetTheSameReceipt", testDuplicateDecisions},
		{"Decide_AllAnswersOrNone", testAllOrNone},
		{"Decide_ReturnsTheReason", testRefusals},
		{"I4_ApproveNeedsTheActionDigest", testApproveNeedsActionDigest},
		{"I4_ApproveWithoutActionPermitsNoEffect", testApproveWithoutAction},
		{"Decide_ClaimsTheRun", testDecideClaims},
		{"Decide_RejectedDecisionClaimsNothing", testRejectedDecisionClaimsNothing},
		{"Concurrent_OneDeciderClaimsTheRun", testManyClaimByDeciding},
		{"I4_NoEffectWithoutApprovalOfExactlyThisAction", testNotApproved},
		{"I4_AnEffectIsBegunOnce", testEffectBegunOnce},
		{"I4_PolicyRulingIsRecordedAsDecision", testPolicyRuling},
		{"I4_APolicyAllowsExactlyThisAction", testPolicyRulingOtherAction},
		{"I4_APolicyCannotDecideARaisedInterrupt", testPolicyRulingOfAskedInterrupt},
		{"BeginEffect_PolicyRulingIsNotOpenWork", testPolicyRulingStays},
		{"Concurrent_AllowedEffectIsBegunOnce", testPolicyRulingRace},
		{"EndEffect_OnlyBegunEffects", testEndUnknownEffect},
		{"I10_NothingIsDecidedAfterItsDeadline", testDeadline},
		{"I11_ExpiryNeverApproves", testExpiry},
		{"I10_NothingExpiresAfterUntil", testExpireUntil},
		{"Cancel_EndsARunAndFencesItsOwner", testCancelRun},
		{"Cancel_ChecksPendingInterrupts", testCancelChecksWaits},
		{"Cancel_EndsAParkedRun", testCancelParked},
		{"I8_AccountsDoNotReachEachOther", testRunAccounts},
		{"Concurrent_ARunHasOneOwnerAtATime", testOneOwner},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, &runsTester{t, open(t)}) })
	}
}

// runsTester provides short calls for the tests of runs.
type runsTester struct {
	t    *testing.T
	runs store.Runs
}

const leaseDuration = time.Hour // does not expire during a test

func (d *runsTester) ctx() context.Context { return d.t.Context() }

func (d *runsTester) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *runsTester) wantErr(err, want error) {
	d.t.Helper()
	if !errors.Is(err, want) {
		d.t.Fatalf("got %v, want %v", err, want)
	}
}

// create creates a run of account "acme".
func (d *runsTester) create(id string) store.Lease {
	d.t.Helper()
	lease, err := d.runs.Create(d.ctx(), newRun(id))
	d.must(err)
	return lease
}

func newRun(id string) store.NewRun {
	return store.NewRun{Account: "acme", ID: id, StateKey: "key-" + id, Provider: "inproc", Graph: "g", ProviderRef: []byte("ref"), Input: []byte("in"), InputDigest: "d", Owner: "a", Lease: leaseDuration}
}

// endWaiting ends an execution with these open interrupts.
func (d *runsTester) endWaiting(lease store.Lease, ids ...string) {
	d.t.Helper()
	status, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts(ids...), Outcome: []byte("waits")})
	d.must(err)
	if status != store.StatusWaiting {
		d.t.Fatalf("the run is %s, not waiting", status)
	}
}

func newInterrupts(ids ...string) []store.NewInterrupt {
	var list []store.NewInterrupt
	for _, id := range ids {
		list = append(list, store.NewInterrupt{ID: id, Address: "node:" + id, Kind: "approval", Data: []byte("data of " + id), AnswerSchema: []byte(`{}`), ShownDigest: "shown-" + id, ActionDigest: "action-" + id})
	}
	return list
}

// waiting creates a run that waits for these interrupts.
func (d *runsTester) waiting(id string, ids ...string) {
	d.t.Helper()
	d.endWaiting(d.create(id), ids...)
}

func approve(run, resume string, ids ...string) store.Decision {
	decision := store.Decision{Account: "acme", Run: run, ResumeID: resume, Actor: "ann", BodyDigest: "body", Via: "test"}
	for _, id := range ids {
		decision.Answers = append(decision.Answers, store.Answer{Interrupt: id, Verdict: store.VerdictApprove, ShownDigest: "shown-" + id, ApprovedDigest: "action-" + id, Data: []byte("yes")})
	}
	return decision
}

func (d *runsTester) decide(decision store.Decision) store.DecisionReceipt {
	d.t.Helper()
	receipt, err := d.runs.Decide(d.ctx(), decision)
	d.must(err)
	return receipt
}

// wantResult checks the result of a decision.
func (d *runsTester) wantResult(decision store.Decision, want store.DecisionResult) {
	d.t.Helper()
	if receipt := d.decide(decision); receipt.Result != want {
		d.t.Fatalf("the decision is %s, not %s", receipt.Result, want)
	}
}

func (d *runsTester) claim(owner string) *store.ClaimedRun {
	d.t.Helper()
	work, err := d.runs.Claim(d.ctx(), store.Claim{Owner: owner, Lease: leaseDuration})
	d.must(err)
	return work
}

func (d *runsTester) claimed(owner, run string) *store.ClaimedRun {
	d.t.Helper()
	work := d.claim(owner)
	if work == nil || work.Run.ID != run {
		d.t.Fatalf("claimed %+v, not %s", work, run)
	}
	return work
}

func (d *runsTester) status(id string) store.Status {
	d.t.Helper()
	run, err := d.runs.Get(d.ctx(), "acme", "key-"+id)
	d.must(err)
	return run.Status
}

func (d *runsTester) wantStatus(id string, want store.Status) {
	d.t.Helper()
	if got := d.status(id); got != want {
		d.t.Fatalf("run %s is %s, not %s", id, got, want)
	}
}

func (d *runsTester) interrupt(run, id string) store.Interrupt {
	d.t.Helper()
	list, err := d.runs.Interrupts(d.ctx(), "acme", run)
	d.must(err)
	for _, i := range list {
		if i.ID == id {
			return i
		}
	}
	d.t.Fatalf("no interrupt %s in %+v", id, list)
	return store.Interrupt{}
}

// waitForClock waits until the store's clock has advanced.
func (d *runsTester) waitForClock(by time.Duration) {
	d.t.Helper()
	start, err := d.runs.Now(d.ctx())
	d.must(err)
	for {
		now, err := d.runs.Now(d.ctx())
		d.must(err)
		if now.Sub(start) > by {
			return
		}
	}
}

func testCreateRun(t *testing.T, d *runsTester) {
	lease := d.create("r")
	if lease != (store.Lease{Account: "acme", Run: "r", Fence: 1}) {
		t.Errorf("the lease is %+v", lease)
	}
	second := newRun("other")
	second.StateKey = "key-r"
	_, err := d.runs.Create(d.ctx(), second)
	d.wantErr(err, store.ErrExists)
	_, err = d.runs.Create(d.ctx(), newRun("r"))
	d.wantErr(err, store.ErrExists)
	run, err := d.runs.Get(d.ctx(), "acme", "key-r")
	d.must(err)
	run.LeaseUntil, run.Created, run.Updated = time.Time{}, time.Time{}, time.Time{}
	want := store.Run{Account: "acme", ID: "r", StateKey: "key-r", Generation: 1, Provider: "inproc", Graph: "g", ProviderRef: []byte("ref"), Input: []byte("in"), InputDigest: "d", Status: store.StatusRunning, Fence: 1, Owner: "a"}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Error(diff)
	}
	_, err = d.runs.Get(d.ctx(), "acme", "key-unknown")
	d.wantErr(err, store.ErrNotFound)
	for _, bad := range []store.NewRun{{Account: "acme", StateKey: "k"}, {Account: "acme", ID: "x"}} {
		_, err = d.runs.Create(d.ctx(), bad)
		d.wantErr(err, store.ErrInvalid)
	}
}

func testGenerations(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	_, err := d.runs.Cancel(d.ctx(), "acme", "r", store.StatusSuperseded, nil, store.Writes{})
	d.must(err)
	next := newRun("r2")
	next.StateKey = "key-r"
	for _, wrong := range []int{0, 2, -1} { // the caller has outdated data
		next.AfterGeneration = wrong
		_, err = d.runs.Create(d.ctx(), next)
		d.wantErr(err, store.ErrExists)
	}
	next.AfterGeneration = 1
	_, err = d.runs.Create(d.ctx(), next)
	d.must(err)
	// the id of the old run does not end the new one
	_, err = d.runs.Cancel(d.ctx(), "acme", "r", store.StatusSuperseded, nil, store.Writes{})
	d.wantErr(err, store.ErrNotFound)
	run, err := d.runs.Get(d.ctx(), "acme", "key-r")
	d.must(err)
	if run.ID != "r2" || run.Generation != 2 || run.Status != store.StatusRunning {
		t.Errorf("the newest run is %s of generation %d, and %s", run.ID, run.Generation, run.Status)
	}
	d.wantResult(approve("r", "1", "i"), store.ResultWithdrawn)
}

func testClaimOrder(t *testing.T, d *runsTester) {
	for _, id := range []string{"r1", "r2", "r3"} {
		d.waiting(id, "i-"+id)
	}
	if work := d.claim("w"); work != nil {
		t.Fatalf("claimed %+v, which waits", work)
	}
	for _, id := range []string{"r2", "r3", "r1"} {
		d.wantResult(approve(id, "resume-"+id, "i-"+id), store.ResultAccepted)
	}
	for _, id := range []string{"r2", "r3", "r1"} {
		if work := d.claimed("w", id); work.Lease.Fence != 2 || work.TakenOver || work.Run.Owner != "w" || work.Run.Status != store.StatusRunning {
			t.Errorf("claimed %+v", work)
		}
	}
	if work := d.claim("w"); work != nil {
		t.Errorf("claimed %+v twice", work)
	}
}

func testClaimOne(t *testing.T, d *runsTester) {
	d.waiting("r1", "i1")
	d.waiting("r2", "i2")
	d.wantResult(approve("r1", "1", "i1"), store.ResultAccepted)
	work, err := d.runs.Claim(d.ctx(), store.Claim{Owner: "w", Lease: leaseDuration, Account: "acme", Run: "r2"})
	d.must(err)
	if work != nil {
		t.Fatalf("claimed %+v, which waits", work)
	}
	work, err = d.runs.Claim(d.ctx(), store.Claim{Owner: "w", Lease: leaseDuration, Account: "acme", Run: "r1"})
	d.must(err)
	if work == nil || work.Run.ID != "r1" {
		t.Fatalf("claimed %+v", work)
	}
}

func testClaimLease(t *testing.T, d *runsTester) {
	lease := d.create("r")
	if work := d.claim("other"); work != nil {
		t.Fatalf("claimed %+v from its owner", work)
	}
	d.must(d.runs.Renew(d.ctx(), lease, time.Nanosecond))
	d.waitForClock(10 * time.Millisecond)
	work := d.claimed("other", "r")
	if !work.TakenOver || work.Lease.Fence != 2 {
		t.Errorf("claimed %+v", work)
	}
}

func testRelease(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	d.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	d.must(d.runs.Release(d.ctx(), d.claimed("w", "r").Lease, store.Release{Delay: time.Hour}))
	d.wantStatus("r", store.StatusReady)
	if work := d.claim("w"); work != nil {
		t.Fatalf("claimed %+v, which is delayed", work)
	}
	if i := d.interrupt("r", "i2"); i.State != store.InterruptPending {
		t.Errorf("it was withdrawn: %+v", i)
	}
	d.waiting("s", "j")
	d.wantResult(approve("s", "2", "j"), store.ResultAccepted)
	d.must(d.runs.Release(d.ctx(), d.claimed("w", "s").Lease, store.Release{}))
	work := d.claimed("w", "s")
	if work.Run.Attempts != 1 || len(work.Decided) != 1 {
		t.Errorf("claimed %+v", work)
	}
	d.must(d.runs.Release(d.ctx(), work.Lease, store.Release{}))
	work = d.claimed("w", "s")
	_, err := d.runs.EndExecution(d.ctx(), work.Lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("k"), Applied: []string{"j"}})
	d.must(err)
	run, err := d.runs.Get(d.ctx(), "acme", "key-s")
	d.must(err)
	if work.Run.Attempts != 2 || run.Attempts != 0 {
		t.Errorf("%d attempts, and %d after EndExecution", work.Run.Attempts, run.Attempts)
	}
}

func testFenced(t *testing.T, d *runsTester) {
	d.waiting("r", "i")
	d.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	old := d.claimed("a", "r").Lease
	d.must(d.runs.Renew(d.ctx(), old, time.Nanosecond))
	d.waitForClock(10 * time.Millisecond)
	now := d.claimed("b", "r").Lease
	d.wantErr(d.runs.Renew(d.ctx(), old, leaseDuration), store.ErrFenced)
	d.wantErr(d.runs.SetProviderRef(d.ctx(), old, []byte("x")), store.ErrFenced)
	d.wantErr(d.runs.Release(d.ctx(), old, store.Release{}), store.ErrFenced)
	_, err := d.runs.EndExecution(d.ctx(), old, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i"}})
	d.wantErr(err, store.ErrFenced)
	_, _, err = d.runs.BeginEffect(d.ctx(), old, store.NewEffect{Interrupt: "i", Attempt: 1, ActionDigest: "action-i", IdempotencyKey: "k"})
	d.wantErr(err, store.ErrFenced)
	_, err = d.runs.Fenced(old).Save(d.ctx(), store.Key{Account: "acme", Run: "r"}, 0, parts{"a": "1"}.delta())
	d.wantErr(err, store.ErrFenced)
	d.wantStatus("r", store.StatusRunning)
	if i := d.interrupt("r", "i"); i.Applied {
		t.Error("a fenced owner has applied a decision")
	}
	_, err = d.runs.Fenced(now).Save(d.ctx(), store.Key{Account: "acme", Run: "r"}, 0, parts{"a": "1"}.delta())
	d.must(err)
	_, err = d.runs.EndExecution(d.ctx(), now, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i"}, Outcome: []byte("end")})
	d.must(err)
	d.wantStatus("r", store.StatusCompleted)
}

func testEndExecutionShowsInterrupts(t *testing.T, d *runsTester) {
	lease := d.create("r")
	open := newInterrupts("i1", "i2")
	open[1].Timeout = time.Hour
	status, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: open, Outcome: []byte("o")})
	d.must(err)
	if status != store.StatusWaiting {
		t.Fatalf("it is %s", status)
	}
	first, second := d.interrupt("r", "i1"), d.interrupt("r", "i2")
	if first.State != store.InterruptPending || !first.Deadline.IsZero() || string(first.Data) != "data of i1" || first.Address != "node:i1" || first.Kind != "approval" || first.ShownDigest != "shown-i1" {
		t.Errorf("the first is %+v", first)
	}
	if left := second.Deadline.Sub(second.Created); left < time.Hour-time.Second || left > time.Hour+time.Second {
		t.Errorf("the second has %v", left)
	}
	d.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	next := d.claimed("w", "r").Lease
	_, err = d.runs.EndExecution(d.ctx(), next, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i3"), Applied: []string{"i1"}})
	d.must(err)
	for id, want := range map[string]store.InterruptState{"i1": store.InterruptDecided, "i2": store.InterruptWithdrawn, "i3": store.InterruptPending} {
		if got := d.interrupt("r", id).State; got != want {
			t.Errorf("%s is %s, not %s", id, got, want)
		}
	}
	d.wantResult(approve("r", "2", "i2"), store.ResultWithdrawn)
}

func testLostWakeUp(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	d.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	lease := d.claimed("w", "r").Lease
	d.wantResult(approve("r", "2", "i2"), store.ResultAccepted) // while it runs
	d.wantStatus("r", store.StatusRunning)
	status, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i2"), Applied: []string{"i1"}})
	d.must(err)
	if status != store.StatusReady {
		t.Fatalf("it is %s and will never be claimed", status)
	}
	if work := d.claimed("w", "r"); len(work.Decided) != 1 || work.Decided[0].ID != "i2" {
		t.Errorf("claimed %+v", work)
	}
}
