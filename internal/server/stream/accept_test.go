package stream

import (
	"strings"
	"testing"
)

// A client gets a stream only if it names the media type.
func FuzzAccepted(f *testing.F) {
	for _, seed := range []string{"", "text/event-stream", "text/event-stream;q=0", "*/*", ";;,,="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if Accepted(header) && !strings.Contains(strings.ToLower(header), "text/event-stream") {
			t.Fatalf("%q wants a stream", header)
		}
	})
}
