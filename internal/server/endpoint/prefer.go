package endpoint

import (
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/server/problems"
)

// Prefer reads the Prefer header, RFC 7240, as far as it is supported. A negative wait means
// not to wait. With both respond-async and wait, in any order, the server waits that long before it
// answers 202.
func Prefer(header string) (wait time.Duration, err error) {
	waitSet := false
	for _, part := range strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			if !waitSet {
				wait = -1
			}
		case "wait":
			n, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
			if err != nil || n < 0 || n > maxWaitSeconds {
				return 0, problems.New("bad_request", "Prefer: wait=N must be between 0 and %d seconds", maxWaitSeconds)
			}
			if waitSet { // the first of several applies
				continue
			}
			if waitSet, wait = true, time.Duration(n)*time.Second; n == 0 {
				wait = -1
			}
		}
	}
	return wait, nil
}

// maxWaitSeconds is how many seconds a caller may wait.
const maxWaitSeconds = 60
