package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Input is everything that rules can look at. It is data: the same input and the same rules give the same decision at any
// time, so that decisions can be explained, replayed and compared.
type Input struct {
	Account     string `json:"account"`
	Environment string `json:"environment,omitempty"`
	Graph       string `json:"graph,omitempty"`
	Node        string `json:"node,omitempty"`
	Run         string `json:"run,omitempty"`
	// Tool is what is to be done, the name of a tool or of an action.
	Tool string `json:"tool"`
	// Args are the arguments, any JSON; none is an empty object.
	Args json.RawMessage `json:"args,omitempty"`
	// Effects says what the tool does to the outside world, in words that the installation chooses; empty for one that only reads.
	Effects []string `json:"effects,omitempty"`
	// Cost is what the action itself is expected to cost, in minor units (cents) of the account's currency.
	Cost int64 `json:"cost,omitempty"`
	// Requester is the person for whom the run works, Agent what proposes the action.
	Requester string `json:"requester,omitempty"`
	Agent     string `json:"agent,omitempty"`
	// Risk is 0 to 3, as the installation rates the tool. Revision counts how often the action was changed while it waited.
	Risk     int `json:"risk,omitempty"`
	Revision int `json:"revision,omitempty"`
	// At is when the question is put. Zone, an IANA name, is the account's; "" takes the one in the rules.
	At   time.Time `json:"at"`
	Zone string    `json:"zone,omitempty"`
	// History holds a number for every [CounterQuery] of the rules, under its Key. One that is missing is an error for the rules
	// that need it.
	History map[string]int64 `json:"history,omitempty"`
	// Untold names those of effects, cost, risk and revision that whoever asks does not know. If the file does not tell it of the tool either, a rule that
	// depends on it cannot be judged: what is not known is not nothing.
	UnknownFields []string `json:"untold,omitempty"`
}

// OptionalFields are the fields that [Input.UnknownFields] can name: an action does not tell them of itself.
var OptionalFields = []string{"effects", "cost", "risk", "revision"}

// tells reports whether the input has a value for a field that [Input.UnknownFields] can name.
func (in *Input) hasValue(field string) bool {
	switch field {
	case fieldEffects:
		return in.Effects != nil
	case fieldCost:
		return in.Cost != 0
	case fieldRisk:
		return in.Risk != 0
	}
	return in.Revision != 0
}

// clearOptionalFields are the places that rules cannot look at.
func (in Input) unknownPatterns() []*cel.AttributePatternType {
	var places []*cel.AttributePatternType
	for _, field := range in.UnknownFields {
		places = append(places, cel.AttributePattern(varRequest).QualString(field))
	}
	return places
}

func (in Input) digest(canonical []byte) (string, error) {
	in.Args = canonical
	text, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInput, err)
	}
	return digestOf(text), nil
}

// arguments returns the arguments as rules see them, and in their one spelling.
func (in Input) arguments() (value any, canonical []byte, err error) {
	raw := in.Args
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if err := strictjson.Check(raw); err != nil {
		return nil, nil, fmt.Errorf("%w: the arguments of %s: %w", ErrInput, in.Tool, err)
	}
	if canonical, err = strictjson.Canonical(raw); err != nil {
		return nil, nil, fmt.Errorf("%w: the arguments of %s: %w", ErrInput, in.Tool, err)
	}
	value, err = decodeArgs(canonical)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the arguments of %s: %w", ErrInput, in.Tool, err)
	}
	return value, canonical, nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// request is how rules see an input: `req`.
type request struct {
	Account     string   `cel:"account"`
	Environment string   `cel:"environment"`
	Graph       string   `cel:"graph"`
	Node        string   `cel:"node"`
	Run         string   `cel:"run"`
	Tool        string   `cel:"tool"`
	Effects     []string `cel:"effects"`
	Cost        int64    `cel:"cost"`
	Requester   string   `cel:"requester"`
	Agent       string   `cel:"agent"`
	Risk        int64    `cel:"risk"`
	Revision    int64    `cel:"revision"`
}

func (in Input) request() *request {
	return &request{
		Account: in.Account, Environment: in.Environment, Graph: in.Graph, Node: in.Node, Run: in.Run, Tool: in.Tool, Effects: in.Effects,
		Cost: in.Cost, Requester: in.Requester, Agent: in.Agent, Risk: int64(in.Risk), Revision: int64(in.Revision),
	}
}

// localClock is how rules see a time in a zone: `local`, and `now.local("Asia/Singapore")`.
type localClock struct {
	Year    int64  `cel:"year"`
	Month   int64  `cel:"month"`
	Day     int64  `cel:"day"`
	Hour    int64  `cel:"hour"`
	Minute  int64  `cel:"minute"`
	Weekday int64  `cel:"weekday"` // 0 is Sunday
	Date    string `cel:"date"`    // 2026-11-14
}

func newLocalClock(t time.Time) *localClock {
	return &localClock{
		Year: int64(t.Year()), Month: int64(t.Month()), Day: int64(t.Day()), Hour: int64(t.Hour()), Minute: int64(t.Minute()),
		Weekday: int64(t.Weekday()), Date: t.Format(time.DateOnly),
	}
}
