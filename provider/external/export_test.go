package external

import "time"

// For tests that cannot wait that long.
func (p *Provider) SetTimeout(d time.Duration) { p.timeout = d }

// Schedule is the delay after each attempt.
var Schedule = retrySchedule

// Crowd is the number of deliveries of an account in progress from which the timeout is shorter.
const Crowd = busyThreshold
