package policy

import (
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/policy/yamldoc"
)

// Verdict is the verdict of a rule, or of all rules together, on an action.
type Verdict string

// The verdicts, mildest first.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

var verdicts = []string{string(Allow), string(Ask), string(Deny)}

// strictness orders verdicts. An unknown verdict is as strict as deny, so that a mistake never
// allows an action.
func (v Verdict) strictness() int {
	switch v {
	case Allow:
		return 0
	case Ask:
		return 1
	}
	return 2
}

// toRoot converts the verdict to the root package's type.
func (v Verdict) toRoot() fermata.Verdict {
	switch v {
	case Allow:
		return fermata.Allow
	case Ask:
		return fermata.AskPerson
	}
	return fermata.Deny
}

// Duration is a duration in YAML and JSON: 90m, 24h, 30d.
type Duration time.Duration

// String omits zero units and uses days from two days on: 24h, not 24h0m0s, and 2d.
func (d Duration) String() string {
	const day = Duration(24 * time.Hour)
	if d > day && d%day == 0 {
		return itoa(int64(d/day)) + "d"
	}
	text := time.Duration(d).String()
	if n := len(text); n > 2 && text[n-2:] == "0s" && text[n-3] == 'm' {
		text = text[:n-2]
	}
	if n := len(text); n > 2 && text[n-2:] == "0m" && text[n-3] == 'h' {
		text = text[:n-2]
	}
	return text
}

// MarshalText returns the same text as String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the text of MarshalText.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := yamldoc.ParseDuration(string(text))
	*d = Duration(span)
	return err
}
