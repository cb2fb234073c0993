//go:build !linux && !darwin

package suspend

import "time"

// Total returns 0, because the suspend time is unknown on this platform.
func Total() time.Duration { return 0 }
