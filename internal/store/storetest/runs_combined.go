package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

// Operations that are combined in one transaction: EndExecution with the last save, and Decide with
// the claim of the run.

func (d *runsTester) checkpoint(run string) (version int64, parts map[string][]byte) {
	d.t.Helper()
	checkpoint, err := d.runs.Fenced(store.Lease{}).Load(d.ctx(), store.Key{Account: "acme", Run: run})
	d.must(err)
	return checkpoint.Version, checkpoint.Parts
}

func testEndExecutionSaves(t *testing.T, d *runsTester) {
	lease := d.create("r")
	first := &store.CheckpointSave{Delta: parts{"a": "1", "b": "2"}.delta()}
	_, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i"), Checkpoint: first})
	d.must(err)
	if version, saved := d.checkpoint("r"); version != 1 || string(saved["a"]) != "1" || string(saved["b"]) != "2" {
		t.Errorf("the first end has saved version %d: %q", version, saved)
	}
	d.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	work := d.claimed("w", "r")
	version, err := d.runs.Fenced(work.Lease).Save(d.ctx(), store.Key{Account: "acme", Run: "r"}, 1, parts{"c": "3"}.delta())
	d.must(err)
	last := &store.CheckpointSave{BaseVersion: version, Delta: store.Delta{Put: []store.Part{{Name: "a", Data: []byte("4")}, {Name: "empty", Data: []byte{}}}, Delete: []string{"b", "never"}}}
	_, err = d.runs.EndExecution(d.ctx(), work.Lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i"}, Checkpoint: last})
	d.must(err)
	version, saved := d.checkpoint("r")
	if diff := cmp.Diff(map[string][]byte{"a": []byte("4"), "c": []byte("3"), "empty": {}}, saved); diff != "" || version != 3 {
		t.Errorf("version %d: %s", version, diff)
	}
}

// testEndExecutionDrops drops the checkpoint with the end of the run. Nothing is dropped if the
// version differs, or if there is another owner.
func testEndExecutionDrops(t *testing.T, d *runsTester) {
	lease := d.create("r")
	key := store.Key{Account: "acme", Run: "r"}
	drop := func(lease store.Lease, base int64) error {
		_, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusCompleted, Outcome: []byte("o"), Checkpoint: &store.CheckpointSave{BaseVersion: base, Drop: true}})
		return err
	}
	d.wantErr(drop(lease, 0), store.ErrFenced) // there is none
	for base, data := range []string{"1", "2"} {
		_, err := d.runs.Fenced(lease).Save(d.ctx(), key, int64(base), parts{"a": data, "b": data}.delta())
		d.must(err)
	}
	for _, base := range []int64{0, 1, 3} {
		d.wantErr(drop(lease, base), store.ErrFenced)
	}
	d.wantErr(drop(store.Lease{Account: "acme", Run: "r", Fence: lease.Fence + 1}, 2), store.ErrFenced)
	if version, saved := d.checkpoint("r"); version != 2 || len(saved) != 2 {
		t.Errorf("something went: version %d, %q", version, saved)
	}
	d.wantStatus("r", store.StatusRunning)
	other := d.create("other")
	_, err := d.runs.Fenced(other).Save(d.ctx(), store.Key{Account: "acme", Run: "other"}, 0, parts{"a": "1"}.delta())
	d.must(err)
	d.must(drop(lease, 2))
	d.wantStatus("r", store.StatusCompleted)
	_, err = d.runs.Fenced(other).Load(d.ctx(), key)
	d.wantErr(err, store.ErrNotFound)
	if version, saved := d.checkpoint("other"); version != 1 || len(saved) != 1 {
		t.Errorf("another's went: version %d, %q", version, saved)
	}
}

func testEndExecutionFencedSavesNothing(t *testing.T, d *runsTester) {
	lease := d.create("r")
	key := store.Key{Account: "acme", Run: "r"}
	_, err := d.runs.Fenced(lease).Save(d.ctx(), key, 0, parts{"a": "1"}.delta())
	d.must(err)
	end := func(lease store.Lease, base int64) error {
		_, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{
			Status: store.StatusWaiting, Open: newInterrupts("i"), Outcome: []byte("o"), Checkpoint: &store.CheckpointSave{BaseVersion: base, Delta: parts{"a": "2"}.delta()},
		})
		return err
	}
	for _, base := range []int64{0, 2, 7} {
		d.wantErr(end(lease, base), store.ErrFenced)
	}
	d.wantStatus("r", store.StatusRunning)
	if asked, err := d.runs.Interrupts(d.ctx(), "acme", "r"); err != nil || len(asked) > 0 {
		t.Errorf("it asks %+v, %v", asked, err)
	}
	d.wantErr(end(store.Lease{Account: "acme", Run: "r", Fence: lease.Fence + 1}, 1), store.ErrFenced)
	d.wantErr(end(store.Lease{Account: "acme", Run: "unknown", Fence: 1}, 0), store.ErrFenced)
	if _, err := d.runs.Fenced(lease).Load(d.ctx(), store.Key{Account: "acme", Run: "unknown"}); err != store.ErrNotFound {
		t.Errorf("a run that does not exist has a checkpoint: %v", err)
	}
	_, err = d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Checkpoint: &store.CheckpointSave{BaseVersion: 1, Delta: parts{"": "2"}.delta()}})
	d.wantErr(err, store.ErrInvalid)
	if version, saved := d.checkpoint("r"); version != 1 || string(saved["a"]) != "1" {
		t.Errorf("something was saved: version %d, %q", version, saved)
	}
	d.must(end(lease, 1))
}

func testDecideClaims(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	decision := approve("r", "1", "i1")
	decision.Claim = &store.Claim{Owner: "w", Lease: leaseDuration, Account: "other", Run: "not looked at"}
	receipt := d.decide(decision)
	work := receipt.Claimed
	if receipt.Result != store.ResultAccepted || work == nil {
		t.Fatalf("the decider gets %+v", receipt)
	}
	if work.Run.ID != "r" || work.Run.Owner != "w" || work.Run.Status != store.StatusRunning || work.Lease != (store.Lease{Account: "acme", Run: "r", Fence: 2}) || work.TakenOver || work.Run.Attempts != 0 {
		t.Errorf("it has %+v", work)
	}
	if len(work.Decided) != 1 || work.Decided[0].ID != "i1" || string(work.Decided[0].Answer) != "yes" {
		t.Errorf("to be done is %+v", work.Decided)
	}
	d.wantStatus("r", store.StatusRunning)
	if again := d.decide(decision); !again.Replayed || again.Claimed != nil {
		t.Errorf("a twin gets %+v", again)
	}
	other := approve("r", "2", "i2") // while it has an owner
	other.Claim = decision.Claim
	if receipt := d.decide(other); receipt.Result != store.ResultAccepted || receipt.Claimed != nil {
		t.Errorf("another decider gets %+v", receipt)
	}
	late := approve("r", "3", "i1")
	late.Claim = decision.Claim
	if receipt := d.decide(late); receipt.Result != store.ResultAlreadyDecided || receipt.Claimed != nil {
		t.Errorf("the late decider gets %+v", receipt)
	}
	status, err := d.runs.EndExecution(d.ctx(), work.Lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i2"), Applied: []string{"i1"}})
	d.must(err)
	if status != store.StatusReady {
		t.Errorf("the second answer does not wake the run: %s", status)
	}
}

func testRejectedDecisionClaimsNothing(t *testing.T, d *runsTester) {
	d.waiting("r", "i1", "i2")
	d.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	refused := approve("r", "2", "i1")
	refused.Actor, refused.Claim = "bob", &store.Claim{Owner: "w", Lease: leaseDuration}
	if receipt := d.decide(refused); receipt.Claimed != nil {
		t.Errorf("a rejected decision claims %+v", receipt.Claimed)
	}
	d.wantStatus("r", store.StatusReady)
}

func testManyClaimByDeciding(t *testing.T, d *runsTester) {
	const questions = 8
	var ids []string
	for n := range questions {
		ids = append(ids, fmt.Sprint("i", n))
	}
	d.waiting("r", ids...)
	var owners atomic.Int32
	var wg sync.WaitGroup
	for n, id := range ids {
		wg.Go(func() {
			decision := approve("r", fmt.Sprint("resume-", n), id)
			decision.Claim = &store.Claim{Owner: fmt.Sprint("w", n), Lease: leaseDuration}
			receipt, err := d.runs.Decide(d.ctx(), decision)
			if err != nil || receipt.Result != store.ResultAccepted {
				t.Errorf("%s gets %+v, %v", id, receipt, err)
			}
			if receipt.Claimed != nil {
				owners.Add(1)
			}
		})
	}
	wg.Wait()
	if owners.Load() != 1 {
		t.Errorf("%d deciders have claimed the run", owners.Load())
	}
}
