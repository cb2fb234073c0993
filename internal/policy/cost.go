package policy

import (
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/fermata-go/fermata/internal/schema"
)

// The limits of regular expressions. Their sizes are counted with all repetitions expanded.
const (
	maxPattern  = 2000
	maxPatterns = 50_000 // of a file together
)

// The costs of calls for which CEL has no estimate, or one that is too low.
const (
	matchSteps = 20  // steps of a regular expression for one unit: its size times the bytes of the text
	globSteps  = 100 // the same for glob
	textBytes  = 10  // bytes that are read for one unit
	zoneCost   = 500 // to look up a time zone by name
)

// patternSizes has the expanded sizes of the patterns of a file.
type patternSizes struct {
	sizes map[string]int
	total int
}

// matchCost returns the cost of matching a text.
func (s *patternSizes) matchCost(pattern, text string) uint64 {
	return limitCost(1 + uint64(s.sizes[pattern])*uint64(len(text))/matchSteps)
}

func globCost(pattern, text string) uint64 {
	return limitCost(1 + uint64(len(pattern))*uint64(len(text))/globSteps)
}

// limitCost limits the cost of one call, so that a rule which fails because of it does not use the
// budget of all rules.
func limitCost(cost uint64) uint64 { return min(cost, ruleCostLimit+1) }

// errTooCostly is the result of a call that would take too long. The call is not made.
func errTooCostly() ref.Val { return types.NewErr("cost limit") }

// limitedRegexps compiles the literal patterns of matches. A match that would cost more than a rule
// may is not started: a running match cannot be stopped.
func (s *patternSizes) limitedRegexps() cel.ProgramOption {
	limited := func(overload string) *interpreter.RegexOptimization {
		return &interpreter.RegexOptimization{
			Function: "matches", OverloadID: overload, RegexIndex: 1,
			Factory: func(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
				compiled, err := regexp.Compile(pattern)
				if err != nil {
					return nil, err
				}
				match := func(values ...ref.Val) ref.Val {
					text, ok := values[0].(types.String)
					switch {
					case !ok:
						return types.MaybeNoSuchOverloadErr(values[0])
					case s.matchCost(pattern, string(text)) > ruleCostLimit:
						return errTooCostly()
					}
					return types.Bool(compiled.MatchString(string(text)))
				}
				return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), match), nil
			},
		}
	}
	return cel.OptimizeRegex(limited(overloads.Matches), limited(overloads.MatchesString))
}

// addPattern counts a literal pattern. It returns what is wrong with it, or "".
func (s *patternSizes) addPattern(pattern string) string {
	if _, known := s.sizes[pattern]; known {
		return ""
	}
	size := schema.PatternSize(pattern)
	if size > maxPattern {
		return "the regular expression is too large: with its repetitions it has " + itoa(size) + " parts; the maximum is " + itoa(maxPattern)
	}
	if s.total+size > maxPatterns {
		return "the regular expressions of the file are too large together: with their repetitions they have more than " + itoa(maxPatterns) + " parts"
	}
	s.sizes[pattern] = size
	s.total += size
	return ""
}

// limitedSets are the functions of CEL's sets library. They compare all pairs, so a call that would
// cost more than a rule may is not started.
func limitedSets() []cel.EnvOption {
	lists := []*cel.Type{cel.ListType(cel.TypeParamType("T")), cel.ListType(cel.TypeParamType("T"))}
	limited := func(name string, compare func(a, b traits.Lister) ref.Val) cel.EnvOption {
		binding := func(a, b ref.Val) ref.Val {
			x, ok := a.(traits.Lister)
			y, good := b.(traits.Lister)
			switch {
			case !ok || !good:
				return types.MaybeNoSuchOverloadErr(b)
			case pairCost(x, y) > ruleCostLimit:
				return errTooCostly()
			}
			return compare(x, y)
		}
		id := "list_" + strings.ReplaceAll(name, ".", "_") + "_list"
		return cel.Function(name, cel.Overload(id, lists, cel.BoolType, cel.BinaryBinding(binding)))
	}
	return []cel.EnvOption{
		limited("sets.contains", containsAll),
		limited("sets.intersects", func(a, b traits.Lister) ref.Val {
			for it := a.Iterator(); it.HasNext() == types.True; {
				if b.Contains(it.Next()) == types.True {
					return types.True
				}
			}
			return types.False
		}),
		limited("sets.equivalent", func(a, b traits.Lister) ref.Val {
			if found := containsAll(a, b); found != types.True {
				return found
			}
			return containsAll(b, a)
		}),
	}
}

func containsAll(list, part traits.Lister) ref.Val {
	for it := part.Iterator(); it.HasNext() == types.True; {
		if found := list.Contains(it.Next()); found != types.True {
			return found
		}
	}
	return types.True
}

func pairCost(a, b traits.Lister) uint64 {
	m, _ := a.Size().(types.Int)
	n, _ := b.Size().(types.Int)
	return limitCost(1 + 2*uint64(m)*uint64(n))
}

// costEstimator returns the costs of our own functions, and of those for which CEL's cost does not
// depend on the size of what they read. CEL estimates the others.
type costEstimator struct{ patterns *patternSizes }

// CallCost implements the interface of CEL.
func (e costEstimator) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var cost uint64
	switch function {
	case "matches", funcGlob:
		first, _ := args[0].(types.String)
		second, _ := args[1].(types.String)
		if cost = globCost(string(first), string(second)); function != funcGlob {
			cost = e.patterns.matchCost(string(second), string(first))
		}
	case operators.Equals, operators.NotEquals:
		cost = equalCost(args[0], args[1])
	case operators.In:
		cost = 1 + uint64(sizeOf(args[1], 10*ruleCostLimit))
	case "sets.contains", "sets.intersects", "sets.equivalent":
		a, ok := args[0].(traits.Lister)
		b, good := args[1].(traits.Lister)
		if !ok || !good {
			return nil
		}
		cost = pairCost(a, b)
	case "size", "int", "uint", "double", "timestamp", "duration":
		text, ok := args[0].(types.String)
		if !ok {
			return nil
		}
		cost = 1 + uint64(len(text)/textBytes)
	default:
		if len(args) != 2 || !slices.Contains(timeFunctions, function) {
			return nil
		}
		cost = zoneCost
	}
	return &cost
}

// timeFunctions look up a time zone if it is their second argument.
var timeFunctions = []string{
	overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDayOfMonth, overloads.TimeGetDate,
	overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes, overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
}

// equalCost returns the cost of comparing two values with everything in them: at most the smaller
// one. It looks at not much more than that.
func equalCost(a, b ref.Val) uint64 {
	for most := 64; ; most *= 4 {
		if size := min(sizeOf(a, most), sizeOf(b, most)); size < most || most > 10*ruleCostLimit {
			return uint64(max(1, size))
		}
	}
}

// sizeOf counts the values inside a value, and the units of its texts. It stops at most.
func sizeOf(value any, most int) int {
	switch v := value.(type) {
	case string:
		return min(most, 1+len(v)/textBytes)
	case types.String:
		return min(most, 1+len(v)/textBytes)
	case types.Bytes:
		return min(most, 1+len(v)/textBytes)
	case []any:
		n := 1
		for i := 0; i < len(v) && n < most; i++ {
			n += sizeOf(v[i], most-n)
		}
		return min(n, most)
	case map[string]any:
		n := 1
		for name, member := range v {
			if n += 1 + len(name)/textBytes; n >= most {
				return most
			}
			n += sizeOf(member, most-n)
		}
		return min(n, most)
	case traits.Lister:
		if native, ok := v.Value().([]any); ok {
			return sizeOf(native, most)
		}
		n := 1
		for it := v.Iterator(); n < most && it.HasNext() == types.True; {
			n += sizeOf(it.Next(), most-n)
		}
		return min(n, most)
	case traits.Mapper:
		if native, ok := v.Value().(map[string]any); ok {
			return sizeOf(native, most)
		}
		n := 1
		for it := v.Iterator(); n < most && it.HasNext() == types.True; {
			key := it.Next()
			n += sizeOf(key, most-n)
			n += sizeOf(v.Get(key), most-n)
		}
		return min(n, most)
	}
	return min(1, most)
}
