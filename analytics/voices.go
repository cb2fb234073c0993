package analytics

import (
	"cmp"
	"strings"
	"time"
)

// voiceCount becomes what somebody said, or what was said on a channel.
type voiceCount struct {
	words, blind, fast, late int
	yes, no, hasty           int // of words on an action or at a gate; hasty are those that were too fast
	toDecide, reading        spread
	said                     bursts
}

func newVoiceCount(l limits, halves int) *voiceCount {
	return &voiceCount{toDecide: spread{most: l.exact}, reading: spread{most: l.exact}, said: bursts{words: l.words, most: halves}}
}

func (c *voiceCount) take(v VoteFacts, late bool) {
	c.words++
	c.toDecide.add(v.At - v.Created)
	judges := true
	switch v.Verb {
	case "approve":
		c.yes++
	case "reject":
		c.no++
	default: // an answer to a question is neither
		judges = false
	}
	if v.Viewed == 0 {
		c.blind++
	} else if read := v.At - v.Viewed; read >= 0 {
		c.reading.add(read)
		if read < int64(v.Words)*60_000/readingSpeed {
			c.fast++
			if judges {
				c.hasty++
			}
		}
	}
	if late {
		c.late++
	}
	c.said.add(v.At)
}

func (c *voiceCount) voices(name string, ofAll int) Voices {
	v := Voices{
		Name: name, Words: c.words, Share: percent(c.words, ofAll), Yes: percent(c.yes, c.yes+c.no), ToDecide: c.toDecide.times(), Reading: c.reading.times(),
		Blind: c.blind, TooFast: percent(c.fast, c.words), Burst: c.said.burst(), OutOfHours: percent(c.late, c.words),
	}
	v.Suspect = c.suspect()
	return v
}

// suspect reports whether that looks like a rubber stamp.
func (c *voiceCount) suspect() bool {
	judged := c.yes + c.no
	return judged >= manyWords && percent(c.yes, judged) >= suspectYes && percent(c.hasty, judged) >= suspectFast
}

// channel is how a word came, without how its giver signed in.
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

func outOfHours(at time.Time) bool {
	return at.Hour() < 7 || at.Hour() >= 20 || at.Weekday() == time.Saturday || at.Weekday() == time.Sunday
}
