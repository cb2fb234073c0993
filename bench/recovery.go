package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/fermata-go/fermata/internal/store/proxytest"
)

// The scenario recovery/postgres measures how soon service is available again after a failure: a
// process that dies during its work, a database crash, a network outage.

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

// measureRecovery causes each failure several times. The longest recovery counts.
func measureRecovery(ctx context.Context, c config, r *recorder) error {
	p := recoveryFull
	if c.quick {
		p = recoveryQuick
	}
	if !c.scenario.MatchString(recoveryName) {
		return nil
	}
	return p.measure(ctx, r)
}

func (p recoveryPlan) measure(ctx context.Context, r *recorder) (err error) {
	on, err := newDatabase(ctx, onPostgres, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	place, err := on.create()
	if err != nil {
		return err
	}
	w := &recoveryRig{database: on.(postgresDatabase), outage: p.outage, first: childOrder{Database: onPostgres, Place: place, Text: parkedText, Lease: p.lease}}
	if w.client, err = newWebClient(ctx, w.first); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.client.close()) }()
	m := &scenarioMetrics{name: recoveryName}
	for _, broken := range []struct {
		name string
		do   func(context.Context) (time.Duration, error)
		most time.Duration
	}{
		{"work of a dead process finished", w.takeOver, p.lease + maxBeyondLease},
		{"decision after the database is back", w.restart, maxAfterCrash},
		{"decision after the network is back", w.disconnect, maxAfterOutage},
	} {
		var longest time.Duration
		for round := range p.rounds {
			r.printf("%s: round %d of %d, %s", recoveryName, round+1, p.rounds, broken.name)
			took, err := broken.do(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", broken.name, err)
			}
			longest = max(longest, took)
		}
		m.millis(broken.name, longest).AtMost = float64(broken.most.Milliseconds())
	}
	r.add(m)
	return nil
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
	at, err := url.Parse(w.first.Place)
	if err != nil {
		return 0, err
	}
	var host testHost
	defer func() { err = errors.Join(err, host.cleanup()) }()
	var proxy *proxytest.Proxy
	if err := host.try(func() { proxy, at.Host = proxytest.Start(&host, at.Host, forward, forward) }); err != nil {
		return 0, err
	}
	behind := w.first
	behind.Place = at.String()
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
	proxy.Freeze()
	time.Sleep(w.outage)
	proxy.Unfreeze()
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

// forward is a network: data that is sent during an outage arrives after it.
func forward(p *proxytest.Proxy, to, from net.Conn) {
	buffer := make([]byte, 64*kib)
	for {
		n, err := from.Read(buffer)
		p.WaitUnfrozen()
		if n > 0 && err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			to.Close()
			return
		}
	}
}
