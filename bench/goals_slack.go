package main

import (
	"fmt"
	"strings"
	"time"
)

// The goals of Slack.
const (
	minSlackShare  = 1.0 / 3         // of the decisions per second through the API
	maxSlackAck    = 3 * time.Second // after which Slack shows an error
	maxOutageRatio = 1.25            // to the time that the rate limit allows
)

// judgeSlack judges decisions in Slack. Times of a quick run are not judged.
func judgeSlack(found []slackResult, outages []slackOutage, quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, r := range found {
		verdicts = append(verdicts,
			verdict{Goal: r.Name + ": clicks decide at least 1/3 as fast as calls of the API", Judged: true, Met: r.Clicks >= minSlackShare*r.Calls, Measured: percent(r.Clicks/r.Calls, r.Calls > 0)},
			verdict{Goal: r.Name + ": a click is acknowledged within 3 s (p99)", Judged: true, Met: r.Acks.P99 <= maxSlackAck, Measured: fmt.Sprintf("%.1f ms", milliseconds(r.Acks.P99))})
	}
	for _, r := range outages {
		ratio := r.Took.Seconds() / r.Shortest.Seconds()
		verdicts = append(verdicts, verdict{
			Goal:   fmt.Sprintf("%s: %s messages are replaced in at most 1.25 of the time that Slack's limit allows", slackOutageName, grouped(r.Requests)),
			Judged: true, Met: ratio <= maxOutageRatio, Measured: fmt.Sprintf("×%.2f", ratio),
		})
	}
	return verdicts
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (r *report) slack(out *strings.Builder) {
	if len(r.Slack) > 0 {
		out.WriteString("\n| decisions | database | clicks in Slack /s | calls of the API /s | Slack / API | click → acknowledged, p50 / p99 | click → run resumed, p50 / p99 |\n|---|---|--:|--:|--:|--:|--:|\n")
	}
	for _, s := range r.Slack {
		fmt.Fprintf(out, "| `%s` | %s | %.0f | %.0f | %s | %.1f / %.1f ms | %.1f / %.1f ms |\n", s.Name, s.Database, s.Clicks, s.Calls, percent(s.Clicks/s.Calls, s.Calls > 0),
			milliseconds(s.Acks.P50), milliseconds(s.Acks.P99), milliseconds(s.Resumed.P50), milliseconds(s.Resumed.P99))
	}
	if len(r.SlackOutage) > 0 {
		out.WriteString("\n| after an outage | messages | simulated time | shortest by Slack's limit | ratio | updates | rejected by Slack |\n|---|--:|--:|--:|--:|--:|--:|\n")
	}
	for _, o := range r.SlackOutage {
		fmt.Fprintf(out, "| `%s` | %s | %v | %v | ×%.2f | %s | %d |\n", slackOutageName, grouped(o.Requests), o.Took.Round(time.Minute), o.Shortest.Round(time.Minute),
			o.Took.Seconds()/o.Shortest.Seconds(), grouped(o.Updates), o.Limited)
	}
}
