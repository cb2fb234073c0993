package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// Processes tests that killed processes share the runs of a store and lose no acknowledged result
// (I2, I16). s is empty. A worker is the test program, started again with these environment
// variables; it must call [WorkForever] with the same store and its standard output. over is called
// when all workers are dead, and returns when all of their leases have expired.
func Processes(t *testing.T, s store.Store, over func(), env ...string) {
	t.Helper()
	d := &runsTester{t, s}
	for n := range sharedRuns {
		_, err := s.EndExecution(t.Context(), d.create(sharedRun(n)), endWithQuestion(nil, sharedRun(n)+"/0"))
		d.must(err)
	}
	var told workerLog
	var all sync.WaitGroup
	for slot := range 3 {
		all.Go(func() {
			for life := range 3 {
				told.runWorker(t, env, 15+7*slot+11*life)
			}
		})
	}
	all.Wait()
	over()
	// finishes what the last worker left
	heir := worker{store: s, name: "heir", lease: leaseDuration, output: io.Discard}
	for n := 0; n < sharedRuns; {
		d.must(heir.execute())
		run, err := s.Get(t.Context(), "acme", "key-"+sharedRun(n))
		d.must(err)
		if run.Status == store.StatusWaiting {
			n++
		}
	}
	told.check(d)
}

const sharedRuns = 4

func sharedRun(n int) string { return fmt.Sprint("run-", n) }

// endWithQuestion ends an execution with one interrupt and names it in the outcome.
func endWithQuestion(applied []string, id string) store.ExecutionEnd {
	return store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts(id), Applied: applied, Outcome: []byte(id)}
}

// WorkForever decides and executes runs, and prints the results of the store. It ends when its
// output is closed. See [Processes].
func WorkForever(s store.Store, told io.Writer) error {
	w := worker{store: s, name: fmt.Sprint("pid-", os.Getpid()), lease: 200 * time.Millisecond, output: told}
	for {
		if err := errors.Join(w.decide(), w.execute()); err != nil {
			return err
		}
	}
}

type worker struct {
	store   store.Store
	name    string
	lease   time.Duration
	output  io.Writer
	decided int
}

func (w *worker) log(words ...any) error {
	_, err := fmt.Fprintln(w.output, words...)
	return err
}

// decide approves the interrupt that some run waits for. The outcome of the run names it.
func (w *worker) decide() error {
	run, err := w.store.Get(context.Background(), "acme", "key-"+sharedRun(rand.IntN(sharedRuns)))
	if err != nil || run.Status != store.StatusWaiting {
		return err
	}
	w.decided++
	id, resume := string(run.Outcome), fmt.Sprint(w.name, "-", w.decided)
	decision := approve(run.ID, resume, id)
	decision.Actor = w.name
	receipt, err := w.store.Decide(context.Background(), decision)
	if err == nil && receipt.Result == store.ResultAccepted {
		err = w.log("decided", run.ID, id, w.name, resume)
	}
	return err
}

// execute takes a run to its next interrupt. Being fenced is not an error: the worker was slow, and
// another one continues.
func (w *worker) execute() error {
	work, err := w.store.Claim(context.Background(), store.Claim{Owner: w.name, Lease: w.lease})
	if err != nil || work == nil {
		return err
	}
	if err := w.log("claimed", work.Run.ID, work.Lease.Fence); err != nil {
		return err
	}
	if err = w.answerNext(work); errors.Is(err, store.ErrFenced) {
		return nil
	}
	return err
}

func (w *worker) answerNext(work *store.ClaimedRun) error {
	ctx := context.Background()
	var applied []string
	for _, i := range work.Decided {
		_, begun, err := w.store.BeginEffect(ctx, work.Lease, store.NewEffect{Interrupt: i.ID, Attempt: 1, ActionDigest: i.ApprovedDigest, IdempotencyKey: i.ID})
		if err == nil && begun {
			err = w.log("begun", work.Run.ID, i.ID)
		}
		if err == nil {
			err = w.store.EndEffect(ctx, store.EffectEnd{Account: "acme", Interrupt: i.ID, Attempt: 1, State: store.EffectSucceeded})
		}
		if err != nil {
			return err
		}
		applied = append(applied, i.ID)
	}
	key := store.Key{Account: "acme", Run: work.Run.ID}
	checkpoint, err := w.store.Load(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	version, err := w.store.Fenced(work.Lease).Save(ctx, key, checkpoint.Version, parts{"run": w.name}.delta())
	if errors.Is(err, store.ErrStale) {
		return store.ErrFenced // it loaded what the next owner has saved
	}
	if err != nil {
		return err
	}
	_, err = w.store.EndExecution(ctx, work.Lease, endWithQuestion(applied, fmt.Sprint(work.Run.ID, "/", version)))
	return err
}

// workerLog holds the output of all workers, including killed ones.
type workerLog struct {
	mu    sync.Mutex
	lines []string
}

// runWorker runs a worker for a number of lines, kills it, and records its output.
func (c *workerLog) runWorker(t *testing.T, env []string, lines int) {
	exe, err := os.Executable()
	if err != nil {
		t.Error(err)
		return
	}
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	said := bufio.NewScanner(stdout)
	for n := 0; said.Scan(); n++ {
		c.mu.Lock()
		c.lines = append(c.lines, said.Text())
		c.mu.Unlock()
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("a worker ended by itself: %v", err)
	}
}

func (c *workerLog) check(d *runsTester) {
	d.t.Helper()
	words, lines := map[string]int{}, map[string]int{}
	for _, line := range c.lines {
		lines[line]++
		// a fence has one owner, an effect is begun once, an interrupt is decided once
		if lines[line] > 1 {
			d.t.Errorf("%q was printed twice", line)
		}
		word := strings.Fields(line)
		words[word[0]]++
		// a worker may be killed in the middle of a line
		if word[0] == "decided" && len(word) == 5 {
			checkDecided(d, word[1], word[2], word[3], word[4])
		}
	}
	d.t.Log(words)
	if words["decided"] < 20 || words["claimed"] < 20 || words["begun"] < 20 {
		d.t.Errorf("the workers did too little: %v", words)
	}
}

// checkDecided checks that an accepted decision is stored and applied.
func checkDecided(d *runsTester, run, id, actor, resume string) {
	d.t.Helper()
	receipt, err := d.runs.Receipt(d.ctx(), "acme", actor, resume)
	if err != nil || receipt.Result != store.ResultAccepted || receipt.Outcome == nil {
		d.t.Errorf("resume %s came to %+v, %v", resume, receipt, err)
	}
	all, err := d.runs.Interrupts(d.ctx(), "acme", run)
	d.must(err)
	n := slices.IndexFunc(all, func(i store.Interrupt) bool { return i.ID == id })
	if n < 0 || all[n].DecidedBy != actor || all[n].ResumeID != resume || all[n].Verdict != store.VerdictApprove || !all[n].Applied {
		d.t.Errorf("%s accepted for %s by %s, but the store has %+v", resume, id, actor, all)
	}
}
