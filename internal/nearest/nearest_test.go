package nearest_test

import (
	"testing"

	"github.com/fermata-go/fermata/internal/nearest"
)

func TestWord(t *testing.T) {
	for word, want := range map[string]string{"adr": "addr", "ADDR": "addr", "zzzz": "", "readTimout": "readTimeout", "raedTimeotu": "readTimeout", "": ""} {
		if got := nearest.Word(word, []string{"addr", "tls", "readTimeout"}, 2); got != want {
			t.Errorf("%q is near to %q, want %q", word, got, want)
		}
	}
}
