package channeltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/channeltest"
	"github.com/fermata-go/fermata/internal/desk"
)

// channels are all channels, by their kind.
var channels = map[string]channeltest.Open{
	"slack": openSlack, "email": openEmail, "pagerduty": openPagerDuty, "alertmanager": openAlertmanager, "teams": openTeams, "notify": openNotify, "webpush": openWebPush,
}

func TestChannels_PassTheSuite(t *testing.T) {
	for name, open := range channels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			channeltest.Run(t, open)
		})
	}
}

// notices is the function of channel.Notify. It keeps the latest notice per request.
type notices struct {
	mu   sync.Mutex
	fail channeltest.Failure
	last map[string]desk.Notice
}

func (n *notices) notify(ctx context.Context, account string, notice desk.Notice) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	fail := n.fail
	n.fail = channeltest.Failure{}
	if err := ctx.Err(); err != nil {
		return err
	}
	if account != "acme" || notice.Key == "" || len(notice.Targets) != 1 {
		return errors.New("incomplete notice")
	}
	switch fail.Kind {
	case channeltest.Permanent:
		return &channel.Error{Code: "refused", Permanent: true}
	case channeltest.RateLimited:
		return &channel.Error{Code: "rate_limited", RetryAfter: fail.RetryAfter}
	case channeltest.Temporary:
		return errors.New("the peer is busy")
	}
	n.last[notice.Request] = notice
	if fail.Kind == channeltest.LoseResponse {
		return errors.New("connection reset")
	}
	return nil
}

func (n *notices) copies() (all []channeltest.Copy) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, notice := range n.last {
		text, _ := json.Marshal(notice)
		all = append(all, channeltest.Copy{Text: string(text)})
	}
	return slices.Clone(all)
}

func openNotify(testing.TB) channeltest.Subject {
	n := &notices{last: make(map[string]desk.Notice)}
	fail := func(f channeltest.Failure) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.fail = f
	}
	return channeltest.Subject{
		Channel: channel.Notify(n.notify), To: "custom:ops", Copies: n.copies, Fail: fail,
		NoState: true, NoFacts: true, NoUpdates: true, NoOutcome: true,
	}
}
