package main

import (
	"bufio"
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

// The goals of event streams: the memory of each, and the time until a decision is received.
const (
	maxPerStream  = 40 * kib
	maxEventDelay = 200 * time.Millisecond
)

// streamedRuns is how many runs the streams follow, each the same number of times.
const streamedRuns = 50

// openers is how many streams are opened concurrently.
const openers = 16

// streams opens event streams of waiting runs, and reads each until the outcome. Then the streams
// are idle, and the memory of the server's process is compared with that before. The cost of a
// stream is the larger of the growths of the process and of Go's heap and stacks.
func (f *comparison) streams(ctx context.Context, name string, count int) error {
	f.recorder.printf("%s: %d event streams", name, count)
	c := f.targets[sideHTTP].(*callerPool).runKeeper.(*webClient)
	for n := range streamedRuns {
		if err := c.start(ctx, streamKey(n)); err != nil {
			return err
		}
	}
	c.http.closeIdle()
	residentBefore, heapBefore, err := c.memory()
	if err != nil {
		return err
	}
	opened := make([]net.Conn, count)
	defer func() {
		for _, conn := range opened {
			if conn != nil {
				conn.Close()
			}
		}
	}()
	errs := make([]error, openers)
	var all sync.WaitGroup
	for i := range openers {
		all.Go(func() {
			for n := i; n < count && errs[i] == nil; n += openers {
				opened[n], errs[i] = c.stream(ctx, streamKey(n%streamedRuns))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	resident, heap, err := c.memory()
	if err != nil {
		return err
	}
	delays, err := c.eventDelays(ctx, opened)
	if err != nil {
		return err
	}
	m := &scenarioMetrics{name: name}
	m.add("streams", float64(count), "")
	m.add("memory of each", float64(max(resident-residentBefore, heap-heapBefore))/float64(count), "B").AtMost = maxPerStream
	m.percentiles("decision received", delays).AtMost = float64(maxEventDelay.Milliseconds())
	f.recorder.add(m)
	return nil
}

// eventDelays decides the runs sequentially, and returns how long it took until each follower
// received the decision.
func (c *webClient) eventDelays(ctx context.Context, opened []net.Conn) ([]time.Duration, error) {
	times, errs := make([]time.Duration, len(opened)), make([]error, len(opened))
	for run := range min(streamedRuns, len(opened)) {
		var all sync.WaitGroup
		started := time.Now()
		for n := run; n < len(opened); n += streamedRuns {
			all.Go(func() {
				errs[n] = errors.Join(opened[n].SetReadDeadline(started.Add(time.Minute)), readUntilEvent(bufio.NewReader(opened[n]), "decided"))
				times[n] = time.Since(started)
			})
		}
		if err := c.decide(ctx, streamKey(run)); err != nil {
			return nil, err
		}
		all.Wait()
	}
	return times, errors.Join(errs...)
}

func streamKey(n int) string { return fmt.Sprintf("stream-%d", n) }

// memory returns the memory of the server after a garbage collection.
func (c *webClient) memory() (resident, heap int64, err error) {
	reply, err := c.child.ask(childOrder{Collect: true})
	return reply.Resident, reply.Heap, err
}

// stream opens a stream. It does not use http.Response, so that ten thousand of them cost this side
// little.
func (c *webClient) stream(ctx context.Context, key string) (_ net.Conn, err error) {
	at, err := url.Parse(c.url)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /api/v1/runs/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", key, at.Host, c.key)
	if err == nil {
		err = readUntilOutcome(conn)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// readUntilOutcome reads a stream until the outcome of the run.
func readUntilOutcome(from io.Reader) error {
	lines := bufio.NewReader(from)
	first, err := lines.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(first, "HTTP/1.1 200 ") {
		return fmt.Errorf("not a stream: %s", strings.TrimSpace(first))
	}
	return readUntilEvent(lines, "outcome")
}

// readUntilEvent reads a stream until an event.
func readUntilEvent(lines *bufio.Reader, kind string) error {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the stream has ended: %w", err)
		}
		if strings.HasPrefix(line, "event: "+kind) {
			return nil
		}
	}
}
