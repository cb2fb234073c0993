package external

import "time"

// For tests that cannot wait that long.
func (p *Provider) SetTimeout(d time.Duration) { p.timeout = d }

// Schedule is how long to wait after each attempt.
var Schedule = retrySchedule

// Crowd is how many messages of an account may be on their way before it is waited for less.
const Crowd = busyThreshold
