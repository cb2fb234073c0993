package storetest

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

func (d *runsTester) release(lease store.Lease, release store.Release) {
	d.t.Helper()
	d.must(d.runs.Release(d.ctx(), lease, release))
}

func (d *runsTester) attempts(id string, want int) {
	d.t.Helper()
	run, err := d.runs.Get(d.ctx(), "acme", "key-"+id)
	d.must(err)
	if run.Attempts != want {
		d.t.Fatalf("%d attempts are counted, not %d", run.Attempts, want)
	}
}

// readyRun creates a run with work.
func (d *runsTester) readyRun(id string) {
	d.t.Helper()
	d.waiting(id, "i-"+id)
	d.wantResult(approve(id, "resume-"+id, "i-"+id), store.ResultAccepted)
}

func testDelay(t *testing.T, d *runsTester) {
	d.readyRun("r")
	d.release(d.claimed("w", "r").Lease, store.Release{Delay: 20 * time.Millisecond})
	d.waitForClock(20 * time.Millisecond)
	d.claimed("w", "r")
}

func testAttempts(t *testing.T, d *runsTester) {
	d.readyRun("r")
	lease := d.claimed("w", "r").Lease
	d.attempts("r", 0) // a claim is not an attempt
	d.must(d.runs.Renew(d.ctx(), lease, time.Nanosecond))
	d.waitForClock(10 * time.Millisecond)
	work := d.claimed("x", "r")
	if !work.TakenOver || work.Run.Attempts != 1 {
		t.Errorf("taken over as %+v", work)
	}
	d.release(work.Lease, store.Release{})
	d.attempts("r", 2)
	work = d.claimed("y", "r")
	if work.TakenOver || work.Run.Attempts != 2 {
		t.Errorf("claimed as %+v", work)
	}
	_, err := d.runs.EndExecution(d.ctx(), work.Lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("next"), Applied: []string{"i-r"}})
	d.must(err)
	d.attempts("r", 0)
}

func testPark(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	d.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	lease := d.claimed("w", "r").Lease
	_, _, err := d.runs.BeginEffect(d.ctx(), lease, store.NewEffect{Interrupt: "i1", Attempt: 1, ActionDigest: "action-i1", IdempotencyKey: "k"})
	d.must(err)
	d.release(lease, store.Release{Park: true})
	d.wantStatus("r", store.StatusParked)
	d.attempts("r", 1)
	d.wantErr(d.runs.Renew(d.ctx(), lease, leaseDuration), store.ErrFenced)
	run, err := d.runs.Get(d.ctx(), "acme", "key-r")
	d.must(err)
	if run.Owner != "" || !run.LeaseUntil.IsZero() || string(run.Outcome) != "waits" {
		t.Errorf("the run is %+v", run)
	}

	// Only Retry ends this: no decision, no end of an effect, no worker.
	d.wantResult(approve("r", "2", "i2"), store.ResultAccepted)
	d.must(d.runs.EndEffect(d.ctx(), store.EffectEnd{Account: "acme", Interrupt: "i1", Attempt: 1, State: store.EffectSucceeded}))
	if work := d.claim("w"); work != nil {
		t.Fatalf("claimed %+v, which is parked", work)
	}
	d.wantStatus("r", store.StatusParked)

	run, err = d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.must(err)
	if run.ID != "r" || run.Status != store.StatusReady || run.Attempts != 0 || run.Fence != lease.Fence {
		t.Errorf("retried as %+v", run)
	}
	if work := d.claimed("w", "r"); len(work.Decided) != 2 || work.Run.Attempts != 0 || work.TakenOver {
		t.Errorf("claimed %+v", work)
	}
}

func testRetry(t *testing.T, d *runsTester) {
	d.readyRun("r")
	d.release(d.claimed("w", "r").Lease, store.Release{Park: true})
	run, err := d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.must(err)
	if run.Status != store.StatusReady || run.ID != "r" {
		t.Errorf("retried as %+v", run)
	}
	for id, account := range map[string]string{"r": "acme", "running": "acme", "waiting": "acme", "over": "acme", "parked": "other", "unknown": "acme"} {
		switch id {
		case "running":
			d.create("running")
		case "waiting":
			d.waiting("waiting", "i")
		case "over":
			d.waiting("over", "j")
			_, err := d.runs.Cancel(d.ctx(), "acme", "over", store.StatusCancelled, nil, store.Writes{})
			d.must(err)
		case "parked":
			d.release(d.create("parked"), store.Release{Park: true})
		}
		before, _ := d.runs.Get(d.ctx(), "acme", "key-"+id)
		_, err := d.runs.Retry(d.ctx(), account, id, store.Writes{})
		d.wantErr(err, store.ErrNotFound)
		if after, _ := d.runs.Get(d.ctx(), "acme", "key-"+id); after.Status != before.Status {
			t.Errorf("%s was %s and is %s", id, before.Status, after.Status)
		}
	}
}

func testRetryFailed(t *testing.T, d *runsTester) {
	fail := func(lease store.Lease) {
		_, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusFailed, Outcome: []byte("failed")})
		d.must(err)
	}
	fail(d.create("r"))
	run, err := d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.must(err)
	if run.Status != store.StatusReady || run.Attempts != 0 {
		t.Errorf("retried as %+v", run)
	}
	fail(d.claimed("w", "r").Lease)
	next := store.NewRun{Account: "acme", ID: "r2", StateKey: run.StateKey, AfterGeneration: run.Generation, Provider: "p", Graph: "g", Owner: "w", Lease: time.Minute}
	lease, err := d.runs.Create(d.ctx(), next)
	d.must(err)
	_, err = d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.wantErr(err, store.ErrNotFound)
	fail(lease)
	_, err = d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.wantErr(err, store.ErrNotFound)
	_, err = d.runs.Retry(d.ctx(), "acme", "r2", store.Writes{})
	d.must(err)
}

// testRetryFailedKeeps retries a run that failed next to an open and an answered question: the
// checkpoint and the unused answer are still there, and the open question stays withdrawn.
func testRetryFailedKeeps(t *testing.T, d *runsTester) {
	d.waiting("r", "used", "unused", "open")
	d.wantResult(approve("r", "1", "used"), store.ResultAccepted)
	lease := d.claimed("w", "r").Lease
	d.wantResult(approve("r", "2", "unused"), store.ResultAccepted)
	_, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{
		Status: store.StatusFailed, Outcome: []byte("failed"), Applied: []string{"used"}, Checkpoint: &store.CheckpointSave{Delta: parts{"a": "1"}.delta()},
	})
	d.must(err)
	run, err := d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.must(err)
	if string(run.Outcome) != "failed" {
		t.Errorf("the outcome is %q before the next execution has ended", run.Outcome)
	}
	d.wantResult(approve("r", "3", "open"), store.ResultWithdrawn)
	work := d.claimed("w", "r")
	if len(work.Decided) != 1 || work.Decided[0].ID != "unused" {
		t.Errorf("claimed with %+v", work.Decided)
	}
	if version, saved := d.checkpoint("r"); version != 1 || string(saved["a"]) != "1" {
		t.Errorf("the checkpoint is version %d: %q", version, saved)
	}
	_, err = d.runs.EndExecution(d.ctx(), work.Lease, store.ExecutionEnd{Status: store.StatusCompleted, Outcome: []byte("done"), Applied: []string{"unused"}})
	d.must(err)
	for id, want := range map[string]string{"1": "failed", "2": "done"} {
		if receipt, err := d.runs.Receipt(d.ctx(), "acme", "ann", id); err != nil || string(receipt.Outcome) != want {
			t.Errorf("resume %s has %q, %v; want %q", id, receipt.Outcome, err, want)
		}
	}
	_, err = d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.wantErr(err, store.ErrNotFound)
}

func testCancelParked(_ *testing.T, d *runsTester) {
	d.release(d.create("r"), store.Release{Park: true})
	_, err := d.runs.Cancel(d.ctx(), "acme", "r", store.StatusCancelled, nil, store.Writes{})
	d.must(err)
	_, err = d.runs.Retry(d.ctx(), "acme", "r", store.Writes{})
	d.wantErr(err, store.ErrNotFound)
	d.wantStatus("r", store.StatusCancelled)
}
