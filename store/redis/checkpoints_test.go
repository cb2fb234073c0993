package redis_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
	"github.com/fermata-go/fermata/internal/store/proxytest"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/store/redis"
	"github.com/fermata-go/fermata/store/redis/internal/redistest"
)

// connect returns a client of the server at addr, which may be that of a proxy.
func connect(t *testing.T, server *redistest.Server, addr string) *goredis.Client {
	t.Helper()
	options, err := goredis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.Addr = addr
	client := goredis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

func mustNew(t *testing.T, client goredis.UniversalClient, config redis.Config) *redis.Checkpoints {
	t.Helper()
	s, err := redis.New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCheckpoints(t *testing.T) {
	server := redistest.Start(t)
	client, opened := connect(t, server, server.Addr()), 0
	storetest.Checkpoints(t, func(t *testing.T) store.Checkpoints {
		opened++
		return mustNew(t, client, redis.Config{Prefix: fmt.Sprint("suite ", opened, ":")})
	})
}

func TestNew_WithoutClientReturnsErrConfig(t *testing.T) {
	if s, err := redis.New(nil, redis.Config{}); s != nil || !errors.Is(err, redis.ErrConfig) {
		t.Errorf("New = %v, %v; want ErrConfig", s, err)
	}
}

func TestI8_EveryRunHasItsOwnKey(t *testing.T) {
	server := redistest.Start(t)
	s := mustNew(t, connect(t, server, server.Addr()), redis.Config{})
	var keys []store.Key
	for _, account := range []string{"", "a", "ab", "a:", "1:a", "a\x00", "\xff", strings.Repeat("a", 10_000)} {
		for _, run := range []string{"r", "br", ":r", "1:r", "\x00r", "\xff", "{r}", strings.Repeat("a", 10_000)} {
			keys = append(keys, store.Key{Account: account, Run: run})
		}
	}
	want := func(i int) string { return fmt.Sprint("of run ", i) }
	for i, key := range keys {
		if version, err := s.Save(t.Context(), key, 0, fixture.PutHead(want(i))); err != nil || version != 1 {
			t.Fatalf("Save(%.20q) = %d, %v", key, version, err)
		}
	}
	for i, key := range keys {
		if got, err := s.Load(t.Context(), key); err != nil || string(got.Parts["run"]) != want(i) {
			t.Errorf("Load(%.20q) = %q, %v; want %q", key, got.Parts, err, want(i))
		}
	}
}

// A second process resumes what the first one has started.
func TestCheckpoints_AnotherProcessResumesTheRun(t *testing.T) {
	server := redistest.Start(t)
	flow, err := newFlow()
	if err != nil {
		t.Fatal(err)
	}
	first := mustNew(t, connect(t, server, server.Addr()), redis.Config{})
	_, err = flow.Run(t.Context(), order{Item: "a piano"}, graph.WithStore(first), graph.WithRun("order-1"))
	info, waits := fermata.ExtractInterruptInfo(err)
	if !waits {
		t.Fatalf("Run: %v; want an interrupt", err)
	}
	second := mustNew(t, connect(t, server, server.Addr()), redis.Config{})
	got, err := flow.Resume(t.Context(), "order-1", graph.WithStore(second), graph.Answer(info.Interrupts[0].ID, true))
	if err != nil || got.Answer != "confirmed: true" {
		t.Errorf("Resume = %+v, %v", got, err)
	}
}

// The connection ends after the server has applied a save and before it replied. The client sends
// the save again, which must not return ErrStale: the caller would believe that another one won.
func TestI16_SaveIsAppliedOnceIfTheReplyIsLost(t *testing.T) {
	server := redistest.Start(t)
	var lose atomic.Bool
	requests := func(p *proxytest.Proxy, to, from net.Conn) { forward(to, from, nil) }
	replies := func(p *proxytest.Proxy, to, from net.Conn) {
		forward(to, from, func(reply []byte) bool { return string(reply) == ":1\r\n" && lose.CompareAndSwap(true, false) })
	}
	_, addr := proxytest.Start(t, server.Addr(), requests, replies)
	s := mustNew(t, connect(t, server, addr), redis.Config{})
	fixture.MustSave(t, s, 0, "first")
	lose.Store(true)
	fixture.MustSave(t, s, 1, "second")
	if lose.Load() {
		t.Fatal("the reply was not lost")
	}
	fixture.WantCheckpoint(t, s, 2, "second")
	if _, err := s.Save(t.Context(), fixture.DemoKey, 1, fixture.PutHead("late")); !errors.Is(err, store.ErrStale) {
		t.Errorf("Save on an old version: %v; want ErrStale", err)
	}
	fixture.WantCheckpoint(t, s, 2, "second")
}

// forward copies until a connection ends or a message must be lost.
func forward(to, from net.Conn, lost func(message []byte) bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if lost != nil && lost(buffer[:n]) {
			return
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// Errors name the operation, and repeat nothing of what was sent.
func TestI7_ErrorsDoNotContainSentData(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server, server.Addr())
	s := mustNew(t, client, redis.Config{Prefix: "canary:"})
	check := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("error %v; want %q without the data", err, want)
		}
	}
	for _, command := range [][]any{{"SET", "canary:0::foreign", "x"}, {"HSET", "canary:0::other", "a", "b"}} {
		if err := client.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Load(t.Context(), store.Key{Run: "foreign"})
	check("redis: load: Redis replied WRONGTYPE", err)
	_, err = s.Load(t.Context(), store.Key{Run: "other"})
	check("redis: load: the value under the key is not a checkpoint", err)
	_, err = s.Save(t.Context(), store.Key{Run: "foreign"}, 0, fixture.PutHead("canary"))
	check("redis: save: Redis replied ", err)
	server.Kill(t)
	_, err = s.Save(t.Context(), fixture.DemoKey, 0, fixture.PutHead("canary"))
	check("redis: save: ", err)
	check("redis: delete: ", s.Delete(t.Context(), fixture.DemoKey))
}

// A full Redis changes nothing and reports it.
func TestSave_FullRedisChangesNothing(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server, server.Addr())
	s := mustNew(t, client, redis.Config{})
	fixture.MustSave(t, s, 0, "first")
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), fixture.DemoKey, 1, fixture.PutHead(string(bytes.Repeat([]byte("x"), 1000)))); err == nil || errors.Is(err, store.ErrStale) {
		t.Errorf("Save in a full Redis: %v; want an error of Redis", err)
	}
	fixture.WantCheckpoint(t, s, 1, "first")
}
