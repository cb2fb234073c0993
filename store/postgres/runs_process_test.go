package postgres

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

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
)

const sharedRuns = 4

func sharedRun(n int) string { return fmt.Sprint("run-", n) }

// workForever decides and executes whatever there is, and tells what it was told by the store. It ends when nobody listens any more.
func workForever(connString string, told io.Writer) error {
	s, err := Open(context.Background(), connString, Config{})
	if err != nil {
		return err
	}
	w := worker{store: s, name: fmt.Sprint("pid-", os.Getpid()), lease: 200 * time.Millisecond, told: told}
	for {
		if err := errors.Join(w.decide(), w.execute()); err != nil {
			return err
		}
	}
}

type worker struct {
	store   *Store
	name    string
	lease   time.Duration
	told    io.Writer
	decided int
}

func (w *worker) tell(words ...any) error {
	_, err := fmt.Fprintln(w.told, words...)
	return err
}

// decide approves what some run waits for. The run's outcome says what that is.
func (w *worker) decide() error {
	run, err := w.store.Get(context.Background(), "acme", "key-"+sharedRun(rand.IntN(sharedRuns)))
	if err != nil || run.Status != store.Waiting {
		return err
	}
	w.decided++
	id, resume := string(run.Outcome), fmt.Sprint(w.name, "-", w.decided)
	decision := say(run.ID, resume, store.Approve, id)
	decision.Actor = w.name
	receipt, err := w.store.Decide(context.Background(), decision)
	if err == nil && receipt.Result == store.Accepted {
		err = w.tell("decided", run.ID, id, w.name, resume)
	}
	return err
}

// execute takes a run one question further. Being fenced is no error: it was slow, and somebody else goes on.
func (w *worker) execute() error {
	work, err := w.store.Claim(context.Background(), store.Claim{Owner: w.name, Lease: w.lease})
	if err != nil || work == nil {
		return err
	}
	if err := w.tell("claimed", work.Run.ID, work.Lease.Fence); err != nil {
		return err
	}
	if err = w.goOn(work); errors.Is(err, store.ErrFenced) {
		return nil
	}
	return err
}

func (w *worker) goOn(work *store.Work) error {
	ctx := context.Background()
	var applied []string
	for _, i := range work.Decided {
		_, begun, err := w.store.Begin(ctx, work.Lease, store.NewEffect{Interrupt: i.ID, Number: 1, Digest: i.Final, Key: i.ID})
		if err == nil && begun {
			err = w.tell("begun", work.Run.ID, i.ID)
		}
		if err == nil {
			err = w.store.End(ctx, store.EffectEnd{Account: "acme", Interrupt: i.ID, Number: 1, State: store.Succeeded})
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
	version, err := w.store.Fenced(work.Lease).Save(ctx, key, checkpoint.Version, putRun(w.name))
	if errors.Is(err, store.ErrStale) {
		return store.ErrFenced // it loaded what the next owner has saved
	}
	if err != nil {
		return err
	}
	_, err = w.store.Rest(ctx, work.Lease, askingOne(applied, fmt.Sprint(work.Run.ID, "/", version)))
	return err
}

func askingOne(applied []string, id string) store.Rest {
	rest := asking(applied, id)
	rest.Outcome = []byte(id)
	return rest
}

// chronicle is what all workers were told, whether or not they were alive a moment later.
type chronicle struct {
	mu    sync.Mutex
	lines []string
}

// live lets a worker live for some lines, and writes down all that it says until it is dead.
func (c *chronicle) live(t *testing.T, connString string, lines int) {
	exe, err := os.Executable()
	if err != nil {
		t.Error(err)
		return
	}
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), childDatabase+"="+connString, childRun+"="), os.Stderr
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

func TestI2_I16_ProcessesThatAreKilledShareTheRuns(t *testing.T) {
	connString := pgtest.New(t)
	s := mustOpen(t, connString, Config{})
	for n := range sharedRuns {
		if _, err := s.Rest(t.Context(), begin(t, s, sharedRun(n)), askingOne(nil, sharedRun(n)+"/0")); err != nil {
			t.Fatal(err)
		}
	}
	var told chronicle
	var wg sync.WaitGroup
	for slot := range 3 {
		wg.Go(func() {
			for life := range 3 {
				told.live(t, connString, 15+7*slot+11*life)
			}
		})
	}
	wg.Wait()

	// What the last of them left is taken over when their leases are over. The server may still be at work for one that is dead.
	heir := worker{store: s, name: "heir", lease: long, told: io.Discard}
	waitFor(t, raw(t, connString), `
SELECT count(*) = 0 FROM fermata.runs WHERE status = 'running' AND lease_until > clock_timestamp()`)
	for alive := 1; alive > 0; {
		if err := heir.execute(); err != nil {
			t.Fatal(err)
		}
		if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM runs WHERE status <> 'waiting'`).Scan(&alive); err != nil {
			t.Fatal(err)
		}
	}
	told.check(t, s)
}

func (c *chronicle) check(t *testing.T, s *Store) {
	t.Helper()
	words, lines := map[string]int{}, map[string]int{}
	for _, line := range c.lines {
		lines[line]++
		if lines[line] > 1 { // a fence has one owner, an effect is begun once, a question is decided once
			t.Errorf("%q was told twice", line)
		}
		word := strings.Fields(line)
		words[word[0]]++
		if word[0] == "decided" && len(word) == 5 {
			checkDecided(t, s, word[1], word[2], word[3], word[4])
		}
	}
	t.Log(words)
	if words["decided"] < 20 || words["claimed"] < 20 || words["begun"] < 20 {
		t.Errorf("the workers did too little: %v", words)
	}
}

// checkDecided wants an accepted decision to be what is written down, and applied.
func checkDecided(t *testing.T, s *Store, run, id, actor, resume string) {
	t.Helper()
	receipt, err := s.Resumed(t.Context(), "acme", actor, resume)
	if err != nil || receipt.Result != store.Accepted || receipt.Outcome == nil {
		t.Errorf("resume %s came to %+v, %v", resume, receipt, err)
	}
	all, err := s.Interrupts(t.Context(), "acme", run)
	if err != nil {
		t.Fatal(err)
	}
	n := slices.IndexFunc(all, func(i store.Interrupt) bool { return i.ID == id })
	if n < 0 || all[n].By != actor || all[n].ResumeID != resume || all[n].Verdict != store.Approve || !all[n].Applied {
		t.Errorf("%s accepted for %s by %s, but the book has %+v", resume, id, actor, all)
	}
}
