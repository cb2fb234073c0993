//go:build unix

package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fleet is the replicas of a test. Each has a slot; a slot has one process after the other.
type fleet struct {
	t      *testing.T
	config func(slot int) replicaConfig // of the next process in a slot
	notes  replicaLog

	mu     sync.Mutex
	slots  []*replica
	last   int64               // the number of the last process
	alive  map[int64]*replica  // running processes
	fates  map[int64]exitState // ended processes
	faults []string            // unexpected behaviour of replicas
	ending sync.WaitGroup
}

// exitState is when a process of a slot ended.
type exitState struct {
	slot int
	at   time.Time
}

// replica is one process of a replica.
type replica struct {
	number int64
	slot   int
	cmd    *exec.Cmd
	stdin  io.Closer
	ready  chan struct{} // closed when it has an address, or has ended without one
	dead   chan struct{} // closed when it has ended
	addr   string        // set when it is ready; "" if it never was
	doomed atomic.Bool   // it was asked to end
}

func newFleet(t *testing.T, slots int, config func(slot int) replicaConfig) *fleet {
	f := &fleet{t: t, config: config, slots: make([]*replica, slots), alive: make(map[int64]*replica), fates: make(map[int64]exitState)}
	t.Cleanup(f.killAll)
	for slot := range f.slots {
		f.boot(slot)
	}
	return f
}

// boot starts the next process in a slot. It does not wait until it is ready.
func (f *fleet) boot(slot int) *replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	l := &replica{number: f.last, slot: slot, ready: make(chan struct{}), dead: make(chan struct{})}
	config := f.config(slot)
	config.Life = l.number
	if err := f.exec(l, config); err != nil {
		f.t.Errorf("a replica does not start: %v", err)
		close(l.ready)
		close(l.dead)
	} else {
		f.alive[l.number] = l
	}
	f.slots[slot] = l
	return l
}

// exec starts a process and follows it until it ends.
func (f *fleet) exec(l *replica, config replicaConfig) error {
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	l.cmd = exec.Command(exe)
	l.cmd.Env = append(os.Environ(), replicaVariable+"="+string(text), "GORACE=halt_on_error=1")
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := l.cmd.StderrPipe()
	if err != nil {
		return err
	}
	// it ends with this process, and so does the replica
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := l.cmd.Start(); err != nil {
		return err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(l.ready)
		if lines := bufio.NewScanner(stdout); lines.Scan() {
			l.addr = lines.Text()
		}
	})
	alarmed := false
	reading.Go(func() { alarmed = f.notes.follow(l.number, stderr) })
	f.ending.Go(func() {
		reading.Wait()
		f.ended(l, l.cmd.Wait(), alarmed)
	})
	return nil
}

// ended records that a process has ended. An unexpected end or an alarm is reported.
func (f *fleet) ended(l *replica, err error, alarmed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.alive, l.number)
	f.fates[l.number] = exitState{l.slot, time.Now()}
	if alarmed || !l.doomed.Load() {
		f.faults = append(f.faults, fmt.Sprintf("replica %d ended by itself: %v\n%s", l.slot, err, f.notes.of(fmt.Sprintf("life %d:", l.number))))
	}
	close(l.dead)
}

// current returns the process in a slot.
func (f *fleet) current(slot int) *replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[slot]
}

// find returns a process by its number, or nil if it has ended.
func (f *fleet) find(number int64) *replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alive[number]
}

// latest returns the number of the last process.
func (f *fleet) latest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// gone reports whether all processes up to a number have ended.
func (f *fleet) gone(upTo int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for number := range f.alive {
		if number <= upTo {
			return false
		}
	}
	return true
}

// kill kills a process as kill -9 does, and waits until it has ended.
func (l *replica) kill() {
	l.doomed.Store(true)
	_ = l.cmd.Process.Kill() // it may have ended already
	<-l.dead
}

// terminate asks a process to end, and waits until it has.
func (l *replica) terminate() {
	l.doomed.Store(true)
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	<-l.dead
}

// freeze stops a process for a while. A shell does it, so that the replica continues and notices
// that it is an orphan, even if the tests end in between.
func (l *replica) freeze(d time.Duration) error {
	script := fmt.Sprintf("kill -STOP %[1]d && sleep %.3[2]f; kill -CONT %[1]d", l.cmd.Process.Pid, d.Seconds())
	if output, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil && !l.doomed.Load() {
		return fmt.Errorf("stopping a replica: %w: %s", err, output)
	}
	return nil
}

// killAll ends all replicas.
func (f *fleet) killAll() {
	for slot := range f.slots {
		if l := f.current(slot); l.cmd.Process != nil {
			l.kill()
		}
	}
	f.ending.Wait()
}

// replicaLog keeps the last log lines of replicas.
type replicaLog struct {
	mu    sync.Mutex
	lines []string
}

const maxNotes = 20_000

// follow records the log of a replica, and reports whether it raised an alarm.
func (n *replicaLog) follow(life int64, stderr io.Reader) (alarmed bool) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		for _, cry := range []string{"DATA RACE", "panic:", "fatal error:"} {
			alarmed = alarmed || strings.Contains(text, cry)
		}
		n.write(fmt.Sprintf("life %d: %s", life, text))
	}
	return alarmed
}

func (n *replicaLog) write(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) == maxNotes {
		n.lines = append(n.lines[:0], n.lines[maxNotes/2:]...)
	}
	n.lines = append(n.lines, line)
}

// has reports whether a line contains all of these words.
func (n *replicaLog) has(words ...string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.lines, func(line string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
	})
}

// of returns the lines that contain a word.
func (n *replicaLog) of(word string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []string
	for _, line := range n.lines {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return strings.Join(found[max(0, len(found)-80):], "\n")
}
