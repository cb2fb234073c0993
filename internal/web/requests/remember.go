package requests

import (
	"encoding/json"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/policy/grant"
)

// bound is an argument of an approval to remember, with what may differ the next time.
type bound struct {
	Arg
	// Op is the selected constraint, and Ops lists the possible ones.
	Op  grant.Op
	Ops []grant.Op
	// Most is the limit of a number.
	Most string
}

// The names of the fields of a bound are a prefix and the JSON pointer of the argument.
const opPrefix, mostPrefix = "op", "most"

// amounts matches the names of arguments that say how much: the next one may be smaller.
var amounts = regexp.MustCompile(`(?i)(amount|cents|total|sum|price|cost)$`)

var plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// bounds returns the arguments with the constraints that the form sent, or with proposed ones: at
// most the approved amount, and everything else the same.
func (f *actionForm) bounds(sent url.Values) (all []bound) {
	for _, a := range f.Args {
		b := bound{Arg: a, Op: grant.Eq, Ops: []grant.Op{grant.Eq}, Most: string(a.Value)}
		isNumber := plainNumber.MatchString(string(a.Value))
		if isNumber {
			b.Ops = append(b.Ops, grant.Le)
		}
		if isNumber && amounts.MatchString(a.Name) {
			b.Op = grant.Le
		}
		if !a.Masked && a.Pointer != "" && !strings.ContainsAny(string(a.Value[:1]), "{[") {
			b.Ops = append(b.Ops, grant.Any)
		}
		if op := grant.Op(sent.Get(opPrefix + a.Pointer)); slices.Contains(b.Ops, op) {
			b.Op = op
		}
		if sent.Has(mostPrefix + a.Pointer) {
			b.Most = strings.TrimSpace(sent.Get(mostPrefix + a.Pointer))
		}
		all = append(all, b)
	}
	return all
}

// isEnough reports whether the limit is a number that the approved one does not exceed.
func (b bound) isEnough() bool {
	most, ok := new(big.Rat).SetString(b.Most)
	approved, isNumber := new(big.Rat).SetString(string(b.Value))
	return plainNumber.MatchString(b.Most) && ok && isNumber && approved.Cmp(most) <= 0
}

// relaxed returns the constraints of the arguments that may differ; nil if none may.
func relaxed(bounds []bound) (json.RawMessage, error) {
	relax := make(map[string]grant.Constraint)
	for _, b := range bounds {
		switch {
		case b.Op == grant.Le && !b.isEnough():
			return nil, &missingError{"action.badbound"}
		case b.Op == grant.Le:
			relax[b.Pointer] = grant.Constraint{Op: grant.Le, Value: json.RawMessage(b.Most)}
		case b.Op == grant.Any:
			relax[b.Pointer] = grant.Anything()
		}
	}
	if len(relax) == 0 {
		return nil, nil
	}
	return json.Marshal(relax)
}
