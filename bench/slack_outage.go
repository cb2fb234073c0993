package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	slackchannel "github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/slackfake"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store/memory"
)

// The scenario slack/outage posts requests, makes Slack unreachable, decides all of them, and
// measures how long messages have live buttons after the outage. The clock is simulated: the limits
// of Slack (50 updates in a minute) decide, not the machine.

// slackOutage is its result.
type slackOutage struct {
	Requests int `json:"requests"`
	// Took is the simulated time from the end of the outage until no message has a live button, and
	// Shortest the time that Slack's rate limit allows.
	Took     time.Duration `json:"tookNs"`
	Shortest time.Duration `json:"shortestNs"`
	// Updates are the calls that replaced messages, Limited those that Slack rejected.
	Updates int `json:"updates"`
	Limited int `json:"limited"`
	// Real is the duration of the measurement.
	Real time.Duration `json:"realNs"`
}

const (
	slackOutageName = "slack/outage"
	outageChannels  = 20
	outageStep      = 2 * time.Second
	outageCheck     = 30 // steps between two looks at the messages
)

// simClock is a clock that the scenario moves.
type simClock struct {
	start time.Time
	moved atomic.Int64
	// notices and deliveries count the passes of the loops that send
	notices, deliveries atomic.Int64
}

func (c *simClock) now() time.Time { return c.start.Add(c.passed()) }

func (c *simClock) passed() time.Duration { return time.Duration(c.moved.Load()) }

// step moves the clock, and waits until the loops that send have made two passes.
func (c *simClock) step() {
	c.moved.Add(int64(outageStep))
	for notices, deliveries := c.notices.Load(), c.deliveries.Load(); c.notices.Load() < notices+2 || c.deliveries.Load() < deliveries+2; {
		time.Sleep(200 * time.Microsecond)
	}
}

// watchedStore counts the passes.
type watchedStore struct {
	*memory.Store
	clock *simClock
}

func (s watchedStore) DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) ([]store.Document, error) {
	switch kind {
	case "notice":
		s.clock.notices.Add(1)
	case "delivery":
		s.clock.deliveries.Add(1)
	}
	return s.Store.DueDocuments(ctx, kind, limit)
}

func (p slackPlan) measureOutage(ctx context.Context, progress io.Writer) (r slackOutage, err error) {
	began, count := time.Now(), p.outage
	r = slackOutage{Requests: count}
	clock := &simClock{start: time.Now()}
	fake, err := slackfake.Start(slackfake.Config{Now: clock.now})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, fake.Close()) }()
	var channels []string
	for i := range outageChannels {
		id := fake.AddChannel(slackfake.Channel{Name: fmt.Sprint("ops", i), Private: true})
		fake.Join(id, fake.BotUser())
		channels = append(channels, id)
	}
	log := slog.New(slog.DiscardHandler)
	workspace, err := slackchannel.New(slackchannel.Config{
		Account: slackAccount, BotToken: fake.BotToken(), SigningSecret: fake.SigningSecret(), APIURL: fake.APIURL(), DigestAbove: 1 << 30, Log: log, Now: clock.now,
	})
	if err != nil {
		return r, err
	}
	runs := &slackRuns{waiting: make(map[int]*slackRun)}
	flow, err := runs.provider()
	if err != nil {
		return r, err
	}
	sealer, err := newSealer()
	if err != nil {
		return r, err
	}
	var asked atomic.Int64
	routes := func() map[string]desk.Route { // the requests go to the channels in turn
		to := "slack:" + channels[int(asked.Load())%len(channels)]
		return map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{{Notify: []string{to}}, {At: timespan.Duration(2000 * time.Hour), Expire: "stale"}}}}
	}
	e, err := executor.New(executor.Config{
		Store: watchedStore{memory.NewStore(clock.now), clock}, Sealer: sealer, Providers: []provider.Provider{flow}, Poll: 2 * time.Millisecond, Wait: time.Minute, RequestTimeout: 3000 * time.Hour, Log: log,
		Desk: executor.DeskConfig{Channels: []channel.Channel{workspace}, CurrentRoutes: routes},
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.Stop(context.Background())) }()
	e.StartWorkers()

	ids := make([]string, count)
	for i := range ids {
		asked.Store(int64(i))
		outcome, err := e.Run(ctx, executor.RunRequest{Account: slackAccount, StateKey: fmt.Sprint("run-", i), Graph: payGraph, Input: json.RawMessage(fmt.Sprintf(`{"amount":%d}`, i))})
		if err != nil {
			return r, err
		}
		waits, ok := outcome.(fermata.NeedsInput)
		if !ok {
			return r, fmt.Errorf("outcome %T", outcome)
		}
		ids[i] = waits.Interrupts[0].ID
	}
	// live counts messages with the button Approve, and all messages
	live := func() (buttons, all int) {
		for _, id := range channels {
			for _, m := range fake.Messages(id) {
				if all++; bytes.Contains(m.Blocks, []byte(`"action_id":"approve"`)) {
					buttons++
				}
			}
		}
		return buttons, all
	}
	until := func(what string, done func() bool) error {
		for limit := clock.passed() + 1000*time.Hour; !done(); {
			if ctx.Err() != nil || clock.passed() > limit {
				return errors.Join(fmt.Errorf("not in time: %s", what), ctx.Err())
			}
			for range outageCheck {
				clock.step()
			}
			if buttons, all := live(); clock.passed()%(30*time.Minute) < outageCheck*outageStep {
				fmt.Fprintf(progress, "%s: %s, %v simulated: %d messages, %d with buttons\n", slackOutageName, what, clock.passed(), all, buttons)
			}
		}
		return nil
	}
	if err := until("all are posted", func() bool { buttons, _ := live(); return buttons == count }); err != nil {
		return r, err
	}
	fake.SetDown(true)
	for i, id := range ids {
		_, err := e.Run(ctx, executor.RunRequest{
			Account: slackAccount, StateKey: fmt.Sprint("run-", i), ResumeID: fmt.Sprint("resume-", i), Actor: "ann", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(`{"verb":"approve"}`)}},
		})
		if err != nil {
			return r, err
		}
	}
	for ends := clock.passed() + 10*time.Minute; clock.passed() < ends; {
		clock.step()
	}
	if buttons, _ := live(); buttons != count {
		return r, fmt.Errorf("%d messages have buttons during the outage, want %d", buttons, count)
	}
	fake.SetDown(false)
	up := clock.passed()
	if err := until("no button is live", func() bool { buttons, _ := live(); return buttons == 0 }); err != nil {
		return r, err
	}
	r.Took, r.Real = clock.passed()-up, time.Since(began)
	rate := slackfake.DefaultRates()["chat.update"]
	r.Shortest = time.Duration(max(0, count-rate.Calls)) * rate.Per / time.Duration(rate.Calls)
	for _, call := range fake.Calls("chat.update") {
		if r.Updates++; call.Code == "ratelimited" {
			r.Limited++
		}
	}
	return r, nil
}
