package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/origin"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Input is everything that rules can use. It is plain data: the same input and the same rules
// always give the same decision, so that decisions can be explained, replayed and compared.
type Input struct {
	Account     string `json:"account"`
	Environment string `json:"environment,omitempty"`
	Graph       string `json:"graph,omitempty"`
	Node        string `json:"node,omitempty"`
	Run         string `json:"run,omitempty"`
	// Kind is the kind of the request. "" is an action, [fermata.Approval]. Gate is the id of a
	// gate.
	Kind string `json:"kind,omitempty"`
	Gate string `json:"gate,omitempty"`
	// Tool is the name of the tool or action.
	Tool string `json:"tool"`
	// Args are the arguments of an action as JSON. Empty means an empty object.
	Args json.RawMessage `json:"args,omitempty"`
	// Data is what a request that is not about an action shows, as JSON. Empty means an empty
	// object.
	Data json.RawMessage `json:"data,omitempty"`
	// Facts are what the agent states for the rules alone, as JSON. Empty means an empty object.
	Facts  json.RawMessage `json:"facts,omitempty"`
	Stated origin.Stated   `json:"stated,omitzero"` // replaces nothing that the server knows
	// Effects lists the effects of the tool on the outside world, in words that the installation
	// chooses. It is empty for a tool that only reads.
	Effects []string `json:"effects,omitempty"`
	// Cost is the expected cost of the action, in minor units (cents) of the account's currency.
	Cost int64 `json:"cost,omitempty"`
	// Requester is the person for whom the run works. Agent is the agent that proposes the action.
	Requester string `json:"requester,omitempty"`
	Agent     string `json:"agent,omitempty"`
	// Risk is 0 to 3, as the installation rates the tool. Revision counts how often the action was
	// changed while it waited.
	Risk     int `json:"risk,omitempty"`
	Revision int `json:"revision,omitempty"`
	// At is the time of the decision. Zone is the account's time zone, an IANA name. "" uses the
	// zone of the rules.
	At   time.Time `json:"at"`
	Zone string    `json:"zone,omitempty"`
	// History has the value of every [CounterQuery] of the rules, under its Key. A rule fails if
	// its value is missing.
	History map[string]int64 `json:"history,omitempty"`
	// UnknownFields lists those of effects, cost, risk and revision that the caller does not know.
	// If the file does not rate the tool either, a rule that depends on such a field fails: unknown
	// is not zero.
	UnknownFields []string `json:"untold,omitempty"`
}

// OptionalFields are the fields that [Input.UnknownFields] can list. An action does not define them
// itself.
var OptionalFields = []string{"effects", "cost", "risk", "revision"}

// hasValue reports whether the input has a value for a field of [Input.UnknownFields].
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

// unknownPatterns returns the attributes that rules cannot use.
func (in Input) unknownPatterns() []*cel.AttributePatternType {
	var places []*cel.AttributePatternType
	for _, field := range in.UnknownFields {
		places = append(places, cel.AttributePattern(varRequest).QualString(field))
	}
	return places
}

func (in Input) digest(v *jsonValues) (string, error) {
	in.Args, in.Data, in.Facts = v.canonicalArgs, v.canonicalData, v.canonicalFacts
	text, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInput, err)
	}
	return digestOf(text), nil
}

// jsonValues are the arguments, the data and the facts of an input as rules see them, and their
// canonical encodings. Data and facts that the input does not have are empty objects without an
// encoding.
type jsonValues struct {
	args, data, facts                            any
	canonicalArgs, canonicalData, canonicalFacts []byte
}

func (in Input) values() (*jsonValues, error) {
	v := &jsonValues{data: map[string]any{}, facts: map[string]any{}}
	var err error
	v.args, v.canonicalArgs, err = decodeJSON("arguments of "+in.Tool, in.Args)
	if err == nil && len(in.Data) > 0 {
		v.data, v.canonicalData, err = decodeJSON("data of the request", in.Data)
	}
	if err == nil && len(in.Facts) > 0 {
		v.facts, v.canonicalFacts, err = decodeJSON("facts of the request", in.Facts)
	}
	return v, err
}

// decodeJSON returns a value as rules see it, and its canonical encoding. what names it in errors.
func decodeJSON(what string, raw json.RawMessage) (value any, canonical []byte, err error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if err = strictjson.Check(raw); err == nil {
		canonical, err = strictjson.Canonical(raw)
	}
	if err == nil {
		value, err = decodeArgs(canonical)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrInput, what, err)
	}
	return value, canonical, nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// request is an input as rules see it: `req`.
type request struct {
	Account     string         `cel:"account"`
	Environment string         `cel:"environment"`
	Graph       string         `cel:"graph"`
	Node        string         `cel:"node"`
	Run         string         `cel:"run"`
	Kind        string         `cel:"kind"`
	Gate        string         `cel:"gate"`
	Tool        string         `cel:"tool"`
	Effects     []string       `cel:"effects"`
	Cost        int64          `cel:"cost"`
	Requester   string         `cel:"requester"`
	Agent       string         `cel:"agent"`
	Risk        int64          `cel:"risk"`
	Revision    int64          `cel:"revision"`
	Stated      *origin.Stated `cel:"stated"`
}

// kind returns the kind of the request.
func (in Input) kind() string { return cmp.Or(in.Kind, fermata.Approval.Name()) }

// isAction reports whether the input is about an action with arguments.
func (in Input) isAction() bool {
	return in.kind() == fermata.Approval.Name() || in.kind() == fermata.EffectInDoubt.Name()
}

func (in Input) request() *request {
	return &request{
		Account: in.Account, Environment: in.Environment, Graph: in.Graph, Node: in.Node, Run: in.Run, Kind: in.kind(), Gate: in.Gate, Tool: in.Tool, Effects: in.Effects,
		Cost: in.Cost, Requester: in.Requester, Agent: in.Agent, Risk: int64(in.Risk), Revision: int64(in.Revision), Stated: &in.Stated,
	}
}

// localClock is a local time as rules see it: `local`, and `now.local("Asia/Singapore")`.
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
