package suggest_test

import (
	"testing"

	"github.com/fermata-go/fermata/internal/suggest"
)

func TestClosest(t *testing.T) {
	for word, want := range map[string]string{"adr": "addr", "ADDR": "addr", "zzzz": "", "readTimout": "readTimeout", "raedTimeotu": "readTimeout", "": ""} {
		if got := suggest.Closest(word, []string{"addr", "tls", "readTimeout"}, 2); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
}
