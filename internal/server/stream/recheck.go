package stream

import (
	"sync"
	"time"
)

// Recheck calls end when in, which it calls at intervals, returns false. stop ends the checks.
// Between checks it uses a timer and no goroutine, because there may be many streams.
func Recheck(every time.Duration, in func() bool, end func()) (stop func()) {
	var mu sync.Mutex
	over := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if !in() {
			end()
			return
		}
		timer.Reset(every)
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
