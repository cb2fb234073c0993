package analytics

import (
	"cmp"
	"strings"
	"time"
)

// voteCounter counts the votes of a person or on a channel.
type voteCounter struct {
	votes, unviewed, tooFast, outOfHours int
	// of votes on an action or at a gate; tooFastDecisions are the fast ones among them
	approved, rejected, tooFastDecisions int
	toDecide, reading                    quantiles
	bursts                               burstCounter
}

func newVoteCounter(l limits, halves int) *voteCounter {
	return &voteCounter{toDecide: quantiles{most: l.durations}, reading: quantiles{most: l.durations}, bursts: burstCounter{maxTimes: l.voteTimes, maxHalfMinutes: halves}}
}

func (c *voteCounter) add(v VoteIndex, late bool) {
	c.votes++
	c.toDecide.add(v.At - v.Created)
	judges := true
	switch v.Verb {
	case "approve":
		c.approved++
	case "reject":
		c.rejected++
	default: // an answer is neither
		judges = false
	}
	if v.Viewed == 0 {
		c.unviewed++
	} else if read := v.At - v.Viewed; read >= 0 {
		c.reading.add(read)
		if read < int64(v.WordCount)*60_000/readingSpeed {
			c.tooFast++
			if judges {
				c.tooFastDecisions++
			}
		}
	}
	if late {
		c.outOfHours++
	}
	c.bursts.add(v.At)
}

func (c *voteCounter) stats(name string, ofAll int) VoteStats {
	v := VoteStats{
		Name: name, Votes: c.votes, Share: percent(c.votes, ofAll), Approvals: percent(c.approved, c.approved+c.rejected), ToDecide: c.toDecide.percentiles(), Reading: c.reading.percentiles(),
		Unviewed: c.unviewed, TooFast: percent(c.tooFast, c.votes), MaxPerMinute: c.bursts.max(), OutOfHours: percent(c.outOfHours, c.votes),
	}
	v.Suspect = c.isSuspect()
	return v
}

// isSuspect reports whether the votes look like rubber-stamping.
func (c *voteCounter) isSuspect() bool {
	judged := c.approved + c.rejected
	return judged >= minVotes && percent(c.approved, judged) >= suspectApprovals && percent(c.tooFastDecisions, judged) >= suspectFast
}

// channel returns the channel of a vote, without the authentication method.
func channel(via string) string {
	name, _, _ := strings.Cut(via, " ")
	return cmp.Or(name, "direct")
}

func percent(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

func isOutOfHours(at time.Time) bool {
	return at.Hour() < 7 || at.Hour() >= 20 || at.Weekday() == time.Saturday || at.Weekday() == time.Sunday
}
