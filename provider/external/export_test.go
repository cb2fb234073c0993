package external

import "time"

// For tests that cannot wait that long.
func (p *Provider) SetTimeout(d time.Duration) { p.patience = d }

// Schedule is how long to wait after each attempt.
var Schedule = schedule

// Crowd is how many messages of an account may be on their way before it is waited for less.
const Crowd = crowd
