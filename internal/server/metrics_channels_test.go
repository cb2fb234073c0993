package server_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/channel"
)

// An outage of a channel is visible while it lasts: failed attempts, a delivery that is retried,
// and its age. Series exist before the first delivery, so that an alert on them can fire.
func TestMetrics_ChannelOutageAndRecovery(t *testing.T) {
	var outage atomic.Bool
	outage.Store(true)
	c := &chatChannel{cards: make(chan channel.Message, 10)}
	c.down = func() error {
		if outage.Load() {
			return &channel.Error{Code: "unreachable", Err: errors.New("no route to host")}
		}
		return &channel.Error{Code: "channel_not_found", Permanent: true, Err: errors.New("it was deleted")}
	}
	s := openChat(t, c)
	has := func(lines ...string) bool {
		text := s.metrics()
		for _, line := range lines {
			if !strings.Contains(text, line) {
				return false
			}
		}
		return true
	}
	if !has(`fermata_channel_sent_total{channel="chat"} 0`, `fermata_channel_dead_total{channel="chat"} 0`, `fermata_channel_undelivered_seconds{channel="chat"} 0`+"\n", `fermata_channel_send_seconds_count{channel="chat"} 0`) {
		t.Errorf("before the first delivery:\n%s", s.metrics())
	}
	s.call("agent@acme", "POST", "/api/v1/requests", dropRequest)
	s.until("the delivery is retried", func() bool {
		return has(`fermata_channel_retrying{channel="chat"} 1`) && !has(`fermata_channel_undelivered_seconds{channel="chat"} 0`+"\n") && !has(`fermata_channel_failed_total{channel="chat"} 0`)
	})
	outage.Store(false)
	s.until("the delivery is given up", func() bool {
		return has(`fermata_channel_dead_total{channel="chat"} 1`, `fermata_channel_retrying{channel="chat"} 0`, `fermata_channel_undelivered_seconds{channel="chat"} 0`+"\n")
	})
}

func TestMetrics_ChannelCountsSentMessages(t *testing.T) {
	s := openChat(t, &chatChannel{cards: make(chan channel.Message, 10)})
	s.call("agent@acme", "POST", "/api/v1/requests", dropRequest)
	s.until("the message is counted", func() bool {
		text := s.metrics()
		return strings.Contains(text, `fermata_channel_sent_total{channel="chat"} 1`) && strings.Contains(text, `fermata_channel_send_seconds_bucket{channel="chat",le="10"} 1`)
	})
}
