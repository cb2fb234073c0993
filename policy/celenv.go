package policy

import (
	"errors"
	"reflect"
	"sync"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// The cost of a rule is counted in CEL's own units, about one per step and one per ten bytes of text looked at. A rule that
// wants more than ruleCostLimit is an error, and so is every rule after the whole set has used up setCostLimit.
const (
	ruleCostLimit = 10_000
	setCostLimit  = 1_000_000
)

// The names under which rules find what they look at.
const (
	varRequest = "req"
	varArgs    = "args"
	varNow     = "now"
	varLocal   = "local"
	varHistory = "history"

	funcCount = "count"
	funcLocal = "local"
	funcGlob  = "glob"
)

// The cost of a call is counted when it is over. So no single call may take as long, or need as much memory, as the product
// of two arguments, which an agent chooses.
var (
	// forbiddenFunctions functions make long texts of short ones.
	forbiddenFunctions = []string{"replace", "join", "format"}
	// literalPatternFunctions functions look for a text, which has to stand in the rule.
	literalPatternFunctions = []string{"matches", "indexOf", "lastIndexOf"}
	// literalListFunctions functions compare each with each, so one of the two lists has to stand in the rule.
	literalListFunctions = []string{"sets.contains", "sets.intersects", "sets.equivalent"}
)

var variables = []string{varRequest, varArgs, varNow, varLocal, varHistory}

// environment is the same for all sets: what differs between them comes in through variables.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	clock := cel.ObjectType("policy.clockTime")
	return cel.NewEnv(
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[*request](), reflect.TypeFor[*localClock]()),
		cel.Variable(varRequest, cel.ObjectType("policy.request")),
		cel.Variable(varArgs, cel.DynType),
		cel.Variable(varNow, cel.TimestampType),
		cel.Variable(varLocal, clock),
		cel.Variable(varHistory, historyType),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		ext.Strings(), ext.Sets(), ext.Math(),
		cel.Function(funcGlob, cel.Overload("glob_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(celGlob))),
		cel.Function(funcCount, cel.MemberOverload("history_count", []*cel.Type{historyType, cel.StringType, cel.StringType}, cel.IntType,
			cel.FunctionBinding(celCount))),
		cel.Function(funcLocal, cel.MemberOverload("timestamp_local", []*cel.Type{cel.TimestampType, cel.StringType}, clock,
			cel.BinaryBinding(celLocal))),
	)
}

// program makes a compiled expression ready to be evaluated, by several goroutines at once. Only one that guesses heeds what is untold: it takes longer.
func program(env *cel.Env, ast *cel.Ast, guesses bool) (cel.Program, error) {
	how := cel.EvalOptions(cel.OptOptimize)
	if guesses {
		how = cel.EvalOptions(cel.OptOptimize, cel.OptPartialEval)
	}
	return env.Program(ast, how, cel.CostLimit(ruleCostLimit), cel.CostTracking(costEstimator{}))
}

// costEstimator says what our own functions cost; of all others CEL knows it.
type costEstimator struct{}

func (costEstimator) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if function != funcGlob || len(args) != 2 {
		return nil
	}
	pattern, _ := args[0].(types.String)
	text, _ := args[1].(types.String)
	cost := uint64(1 + len(pattern)*len(text)/100)
	return &cost
}

func celGlob(pattern, text ref.Val) ref.Val {
	p, ok := pattern.(types.String)
	t, good := text.(types.String)
	if !ok || !good {
		return types.MaybeNoSuchOverloadErr(text)
	}
	return types.Bool(glob(string(p), string(t)))
}

// glob matches * with any text and ? with one letter, without going back more than one star.
func glob(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*': // before the letters: a star in the text is a letter
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			t += runeLen(text[t:])
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			mark += runeLen(text[mark:])
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// runeLen is how many bytes the first letter has.
func runeLen(text string) int {
	_, size := utf8.DecodeRuneInString(text)
	return size
}

func celLocal(at, zone ref.Val) ref.Val {
	t, ok := at.(types.Timestamp)
	z, good := zone.(types.String)
	if !ok || !good {
		return types.MaybeNoSuchOverloadErr(zone)
	}
	location, err := loadZone(string(z))
	if err != nil {
		return types.NewErr("unknown time zone")
	}
	native, err := clockTimeType()
	if err != nil {
		return types.NewErr("%v", err)
	}
	return native.Adapt(types.DefaultTypeAdapter, newLocalClock(t.In(location)))
}

// clockTimeType makes a CEL value of a localClock. It is made apart from the environment, which needs it.
var clockTimeType = sync.OnceValues(func() (*types.NativeType, error) {
	return types.NewNativeType(reflect.TypeFor[localClock](), types.ParseStructTags(true))
})

var zones sync.Map // of *time.Location, by name: reading a zone's file takes longer than all rules together

func loadZone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	location, err := time.LoadLocation(name)
	if err == nil && location == time.Local {
		err = errors.New("the zone of this machine is not the same everywhere")
	}
	if err != nil {
		return nil, err
	}
	zones.Store(name, location)
	return location, nil
}
