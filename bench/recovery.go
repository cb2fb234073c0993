package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The scenario recovery/postgres measures how soon service is available again after a failure: a
// process that dies during its work, a database crash, a network outage.

// recoveryResult has the longest time of all rounds.
type recoveryResult struct {
	Name   string        `json:"name"`
	Rounds int           `json:"turns"`
	Lease  time.Duration `json:"leaseNs"`
	// TakenOver is the time from the death of a process until another one has finished its work.
	TakenOver time.Duration `json:"takenOverNs"`
	// Restarted is the time from when the database accepts connections until a decision is done,
	// Reconnected the time from when the network is back.
	Restarted   time.Duration `json:"restartedNs"`
	Reconnected time.Duration `json:"healedNs"`
}

// recoveryPlan has the number of rounds, the duration of the network outage, and the lease
// duration.
type recoveryPlan struct {
	rounds int
	outage time.Duration
	lease  time.Duration
}

var (
	// the executor's default
	recoveryFull  = recoveryPlan{rounds: 3, outage: 3 * time.Second, lease: 15 * time.Second}
	recoveryQuick = recoveryPlan{rounds: 1, outage: 100 * time.Millisecond, lease: time.Second}
)

const recoveryName = "recovery/" + onPostgres

// measure causes each failure several times.
func (p recoveryPlan) measure(ctx context.Context, progress io.Writer) (r recoveryResult, err error) {
	r = recoveryResult{Name: recoveryName, Rounds: p.rounds, Lease: p.lease}
	server, err := startServer(ctx)
	if err != nil {
		return r, err
	}
	on := postgresDatabase{server}
	defer func() { err = errors.Join(err, on.close()) }()
	place, err := on.create()
	if err != nil {
		return r, err
	}
	w := &recoveryRig{database: on, outage: p.outage, first: childOrder{Database: onPostgres, Place: place, Text: parkedText, Lease: p.lease}}
	if w.client, err = newWebClient(ctx, w.first); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.client.close()) }()
	for round := range p.rounds {
		for _, broken := range []struct {
			name string
			do   func(context.Context) (time.Duration, error)
			took *time.Duration
		}{{"process death", w.takeOver, &r.TakenOver}, {"database crash", w.restart, &r.Restarted}, {"network outage", w.disconnect, &r.Reconnected}} {
			fmt.Fprintf(progress, "%s: round %d of %d, %s\n", recoveryName, round+1, p.rounds, broken.name)
			took, err := broken.do(ctx)
			if err != nil {
				return r, fmt.Errorf("%s: %w", broken.name, err)
			}
			*broken.took = max(*broken.took, took)
		}
	}
	return r, nil
}

// recoveryRig has a database and its servers.
type recoveryRig struct {
	database postgresDatabase
	first    childOrder
	outage   time.Duration
	client   *webClient // a server that survives
	keys     int
}

// start starts some runs, and returns their keys.
func (w *recoveryRig) start(ctx context.Context, count int) (keys []string, err error) {
	for range count {
		w.keys++
		key := fmt.Sprintf("again-%d", w.keys)
		if err := w.client.start(ctx, key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// takeOver kills a process while it executes a run, and waits until no run is executing. Sometimes
// the process dies between two runs.
func (w *recoveryRig) takeOver(ctx context.Context) (took time.Duration, err error) {
	for range 20 {
		left, err := w.kill(ctx)
		if err != nil {
			return 0, err
		}
		started := time.Now()
		for held := left; held > 0; {
			time.Sleep(20 * time.Millisecond)
			if held, err = w.held(ctx); err != nil {
				return 0, err
			}
		}
		if left > 0 {
			return time.Since(started), nil
		}
	}
	return 0, errors.New("the process never died during a run")
}

// kill lets a process decide runs, kills it, and returns how many runs it was executing.
func (w *recoveryRig) kill(ctx context.Context) (left int, err error) {
	keys, err := w.start(ctx, 100)
	if err != nil {
		return 0, err
	}
	victim, err := newChild(ctx, w.first)
	if err != nil {
		return 0, err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = victim.ask(childOrder{Decide: keys}) // it dies before it can answer
	}()
	err = errors.Join(w.waitHeld(ctx, over), victim.cmd.Process.Kill())
	<-over
	if err != nil {
		return 0, err
	}
	return w.held(ctx)
}

// waitHeld waits until a run is executing, or all have ended.
func (w *recoveryRig) waitHeld(ctx context.Context, over <-chan struct{}) error {
	for {
		if held, err := w.held(ctx); held > 0 || err != nil {
			return err
		}
		select {
		case <-over:
			return nil
		case <-time.After(time.Millisecond):
		}
	}
}

// held returns how many runs are ready or running.
func (w *recoveryRig) held(ctx context.Context) (count int, err error) {
	conn, err := w.database.superuser(ctx, w.first.Place)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, `SELECT count(*) FROM fermata.runs WHERE status IN ('ready', 'running')`).Scan(&count)
	return count, errors.Join(err, conn.Close(ctx))
}

// restart crashes the database.
func (w *recoveryRig) restart(ctx context.Context) (took time.Duration, err error) {
	keys, err := w.start(ctx, 1)
	if err != nil {
		return 0, err
	}
	if err := w.database.host.try(func() { w.database.cluster.Kill(w.database.host); w.database.cluster.Restart(w.database.host) }); err != nil {
		return 0, err
	}
	return decideWithRetry(ctx, w.client, keys[0])
}

// disconnect blocks the network between a server and the database for a while.
func (w *recoveryRig) disconnect(ctx context.Context) (took time.Duration, err error) {
	cable, place, err := newFaultProxy(w.first.Place)
	if err != nil {
		return 0, err
	}
	defer cable.close()
	behind := w.first
	behind.Place = place
	client, err := newWebClient(ctx, behind)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.close()) }()
	keys, err := w.start(ctx, 2)
	if err != nil {
		return 0, err
	}
	if err := client.decide(ctx, keys[0]); err != nil { // the connection works
		return 0, err
	}
	cable.disconnect()
	time.Sleep(w.outage)
	cable.reconnect()
	return decideWithRetry(ctx, client, keys[1])
}

// decideWithRetry decides a run, with as many retries as necessary.
func decideWithRetry(ctx context.Context, client *webClient, key string) (time.Duration, error) {
	started := time.Now()
	for {
		err := client.decide(ctx, key)
		if err == nil || time.Since(started) > time.Minute {
			return time.Since(started), err
		}
		client.http.closeIdle()
		time.Sleep(20 * time.Millisecond)
	}
}

// The goals: L7 of the overall targets.
const (
	maxBeyondLease = time.Second
	maxAfterCrash  = 5 * time.Second
	maxAfterOutage = 2 * time.Second
)

// judgeRecovery judges whether service was available soon enough. Times of a quick run are not
// judged.
func judgeRecovery(found []recoveryResult, quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, r := range found {
		for _, one := range []struct {
			goal       string
			took, most time.Duration
		}{
			{"the work of a dead process is finished within its lease and 1 s", r.TakenOver, r.Lease + maxBeyondLease},
			{"a decision is done within 5 s after the database is back", r.Restarted, maxAfterCrash},
			{"a decision is done within 2 s after the network is back", r.Reconnected, maxAfterOutage},
		} {
			verdicts = append(verdicts, verdict{Goal: r.Name + ": " + one.goal, Judged: one.took > 0, Met: one.took <= one.most, Measured: fmt.Sprintf("%.2f s", one.took.Seconds())})
		}
	}
	return verdicts
}

func (r *report) recovery(out *strings.Builder) {
	if len(r.Recovery) == 0 {
		return
	}
	out.WriteString("\n| recovery | rounds | work of a dead process finished after | decision done after the database is back | after the network is back |\n|---|--:|--:|--:|--:|\n")
	for _, a := range r.Recovery {
		fmt.Fprintf(out, "| `%s` | %d | %.2f s, with a lease of %.0f s | %.2f s | %.2f s |\n", a.Name, a.Rounds, a.TakenOver.Seconds(), a.Lease.Seconds(), a.Restarted.Seconds(), a.Reconnected.Seconds())
	}
}

// faultProxy forwards connections to a database, and can be disconnected. Data sent during an
// outage arrives after it, as on a network.
type faultProxy struct {
	listener net.Listener
	mu       sync.RWMutex // forwarding holds it for reading
	running  sync.WaitGroup
	conns    sync.Map // the connections
}

// newFaultProxy returns a proxy, and the connection string that uses it.
func newFaultProxy(connString string) (*faultProxy, string, error) {
	at, err := url.Parse(connString)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	c := &faultProxy{listener: listener}
	to := at.Host
	c.running.Go(func() { c.accept(to) })
	return c, strings.Replace(connString, at.Host, listener.Addr().String(), 1), nil
}

func (c *faultProxy) accept(to string) {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			near.Close()
			continue
		}
		for from, into := range map[net.Conn]net.Conn{near: far, far: near} {
			c.conns.Store(from, true)
			c.running.Go(func() { c.forward(from, into) })
		}
	}
}

func (c *faultProxy) forward(from, into net.Conn) {
	defer into.Close()
	defer c.conns.Delete(from)
	buffer := make([]byte, 64*kib)
	for {
		n, err := from.Read(buffer)
		c.mu.RLock()
		if n > 0 && err == nil {
			_, err = into.Write(buffer[:n])
		}
		c.mu.RUnlock()
		if err != nil {
			return
		}
	}
}

func (c *faultProxy) disconnect() { c.mu.Lock() }
func (c *faultProxy) reconnect()  { c.mu.Unlock() }

func (c *faultProxy) close() {
	c.listener.Close()
	c.conns.Range(func(conn, _ any) bool {
		conn.(net.Conn).Close()
		return true
	})
	c.running.Wait()
}
