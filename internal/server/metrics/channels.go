package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/executor"
)

// Channels exports the deliveries of each channel. Series of the configured channels exist
// from the start.
type Channels struct {
	stats func() executor.Stats
	store *Store
	now   func() time.Time
}

// NewChannels returns a collector of the deliveries that stats and the store count.
func NewChannels(stats func() executor.Stats, store *Store) Channels {
	return Channels{stats: stats, store: store, now: time.Now}
}

var (
	channelSentDesc     = desc("fermata_channel_sent_total", "Messages that a channel accepted from this process.", "channel")
	channelFailedDesc   = desc("fermata_channel_failed_total", "Failed attempts of this process to send through a channel; they are retried, or given up.", "channel")
	channelDeadDesc     = desc("fermata_channel_dead_total", "Deliveries that this process gave up.", "channel")
	channelCallDesc     = desc("fermata_channel_send_seconds", "Time that a channel took for the messages that it accepted.", "channel")
	channelRetryingDesc = desc("fermata_channel_retrying", "Deliveries whose last attempt by this process failed, and which are tried again.", "channel")
	channelQueuedDesc   = desc("fermata_channel_queued", "Deliveries of all accounts that are due and not being sent, at most 1000.", "channel")
	channelOldestDesc   = desc("fermata_channel_undelivered_seconds", "How long the oldest delivery is due or fails; 0 if there is none.", "channel")
)

// Describe implements prometheus.Collector.
func (Channels) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{channelSentDesc, channelFailedDesc, channelDeadDesc, channelCallDesc, channelRetryingDesc, channelQueuedDesc, channelOldestDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector. If the store does not answer, the deliveries that wait
// in it are not exported.
func (c Channels) Collect(to chan<- prometheus.Metric) {
	now, counts, overview := c.now(), c.stats().Deliveries, c.store.get()
	if overview != nil {
		for kind := range overview.DueDeliveries {
			if _, known := counts[kind]; !known {
				counts[kind] = executor.DeliveryCount{}
			}
		}
	}
	for kind, count := range counts {
		label := kind
		if kind == channel.AnyKind {
			label = "custom"
		}
		value := func(d *prometheus.Desc, of prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, of, v, label)
		}
		value(channelSentDesc, prometheus.CounterValue, float64(count.Sent))
		value(channelFailedDesc, prometheus.CounterValue, float64(count.Failed))
		value(channelDeadDesc, prometheus.CounterValue, float64(count.Dead))
		value(channelRetryingDesc, prometheus.GaugeValue, float64(count.Retrying))
		within := make(map[float64]uint64)
		for n, bound := range executor.CallBounds {
			within[bound] = 0
			if n < len(count.Calls.Within) {
				within[bound] = count.Calls.Within[n]
			}
		}
		to <- prometheus.MustNewConstHistogram(channelCallDesc, count.Calls.Count, count.Calls.Seconds, within, label)
		undelivered := time.Duration(0)
		if !count.FailingSince.IsZero() {
			undelivered = max(0, now.Sub(count.FailingSince))
		}
		if overview != nil {
			due := overview.DueDeliveries[kind]
			value(channelQueuedDesc, prometheus.GaugeValue, float64(due.Count))
			if due.Count > 0 {
				undelivered = max(undelivered, overview.Now.Sub(due.Oldest))
			}
		}
		value(channelOldestDesc, prometheus.GaugeValue, undelivered.Seconds())
	}
}
