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

// Costs are in CEL units: about one per evaluation step and one per ten bytes of text. A rule fails
// above ruleCostLimit. After the set has used setCostLimit, all further rules fail.
const (
	ruleCostLimit = 10_000
	setCostLimit  = 1_000_000
)

// interruptFrequency is how many iterations of a comprehension run before the context is checked.
const interruptFrequency = 64

// The names of variables and functions in rules.
const (
	varRequest = "req"
	varArgs    = "args"
	varData    = "data"
	varFacts   = "facts"
	varNow     = "now"
	varLocal   = "local"
	varHistory = "history"

	funcCount = "count"
	funcLocal = "local"
	funcGlob  = "glob"
)

// CEL counts the cost of a call after it returns. So no single call may take time or memory
// proportional to the product of two arguments that an agent chooses.
var (
	// forbiddenFunctions build long texts from short ones.
	forbiddenFunctions = []string{"replace", "join", "format"}
	// literalPatternFunctions search for a text, which must be a literal in the rule.
	literalPatternFunctions = []string{"matches", "indexOf", "lastIndexOf"}
	// literalListFunctions compare all pairs, so one of the two lists must be a literal in the
	// rule.
	literalListFunctions = []string{"sets.contains", "sets.intersects", "sets.equivalent"}
)

var variables = []string{varRequest, varArgs, varData, varFacts, varNow, varLocal, varHistory}

// environment is shared by all sets. They differ only in the variables.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	clock := cel.ObjectType("policy.localClock")
	return cel.NewEnv(append(limitedSets(),
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[*request](), reflect.TypeFor[*localClock]()),
		cel.Variable(varRequest, cel.ObjectType("policy.request")),
		cel.Variable(varArgs, cel.DynType),
		cel.Variable(varData, cel.DynType),
		cel.Variable(varFacts, cel.DynType),
		cel.Variable(varNow, cel.TimestampType),
		cel.Variable(varLocal, clock),
		cel.Variable(varHistory, historyType),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		ext.Strings(), ext.Math(),
		cel.Function(funcGlob, cel.Overload("glob_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(celGlob))),
		cel.Function(funcCount, cel.MemberOverload("history_count", []*cel.Type{historyType, cel.StringType, cel.StringType}, cel.IntType,
			cel.FunctionBinding(celCount))),
		cel.Function(funcLocal, cel.MemberOverload("timestamp_local", []*cel.Type{cel.TimestampType, cel.StringType}, clock,
			cel.BinaryBinding(celLocal))),
	)...)
}

// program builds a program that several goroutines can use at once. Only a partial program supports
// unknown fields, because it is slower.
func program(env *cel.Env, ast *cel.Ast, guesses bool, patterns *patternSizes) (cel.Program, error) {
	how := cel.EvalOptions(cel.OptOptimize)
	if guesses {
		how = cel.EvalOptions(cel.OptOptimize, cel.OptPartialEval)
	}
	return env.Program(ast, how, cel.CostLimit(ruleCostLimit), cel.CostTracking(costEstimator{patterns}), patterns.limitedRegexps(), cel.InterruptCheckFrequency(interruptFrequency))
}

func celGlob(pattern, text ref.Val) ref.Val {
	p, ok := pattern.(types.String)
	t, good := text.(types.String)
	if !ok || !good {
		return types.MaybeNoSuchOverloadErr(text)
	}
	if globCost(string(p), string(t)) > ruleCostLimit {
		return errTooCostly()
	}
	return types.Bool(glob(string(p), string(t)))
}

// glob matches * with any text and ? with one character. It backtracks to the last star only.
func glob(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		// check for the star first: the text may contain a literal star
		case p < len(pattern) && pattern[p] == '*':
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

// runeLen returns the number of bytes of the first character.
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

// clockTimeType converts a localClock to a CEL value. It is separate from the environment, which
// depends on it.
var clockTimeType = sync.OnceValues(func() (*types.NativeType, error) {
	return types.NewNativeType(reflect.TypeFor[localClock](), types.ParseStructTags(true))
})

// of *time.Location by name, because loading a zone is slower than evaluating all rules
var zones sync.Map

func loadZone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	location, err := time.LoadLocation(name)
	if err == nil && location == time.Local {
		err = errors.New("the local zone of the machine is not allowed")
	}
	if err != nil {
		return nil, err
	}
	zones.Store(name, location)
	return location, nil
}
