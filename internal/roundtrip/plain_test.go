package roundtrip_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/internal/roundtrip"
)

// The key of a question is derived from its JSON, so the fast path must produce the same bytes as
// encoding/json.
func TestPlainText_MatchesEncodingJSON(t *testing.T) {
	texts := []string{"", "yes", "publish?", `say "no"`, `a\b`, "<b>&</b>", "line\nend", "é", "\u2028", "\x7f", "\x00", "~ "}
	for c := range 128 {
		texts = append(texts, "a"+string(rune(c))+"b")
	}
	for _, text := range texts {
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := roundtrip.Marshal(text)
		if err != nil || string(got) != string(want) {
			t.Errorf("%q is written as %s, %v, want %s", text, got, err, want)
		}
		var back string
		if err := roundtrip.Unmarshal(want, &back); err != nil || back != text {
			t.Errorf("%s is read as %q, %v", want, back, err)
		}
	}
	for _, broken := range []string{``, `"`, `"a`, `a"`, `"a"b"`, `"\"`, `"a" "b"`, `null`, `1`} {
		var got, want string
		err, wantErr := roundtrip.Unmarshal([]byte(broken), &got), json.Unmarshal([]byte(broken), &want)
		if (err == nil) != (wantErr == nil) || got != want {
			t.Errorf("%s is read as %q, %v, want %q, %v", broken, got, err, want, wantErr)
		}
	}
}
