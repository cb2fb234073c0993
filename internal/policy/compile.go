package policy

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"

	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// compile compiles all expressions and reports errors.
func (r *loader) compile(d *document) error {
	env, err := environment()
	if err != nil {
		return err
	}
	r.compileRatings(env, d.ratings)
	for _, one := range d.rules {
		r.rule = one.ID
		at := d.nodes[one]
		if strings.TrimSpace(one.When) != "" {
			one.info = r.expression(env, at.when, cel.BoolType, &one.when)
			r.checkKnownFields(d, at.when, one.info, one.info)
			r.checkKinds(d, at.when, one)
		}
		if !at.amount.Missing() {
			amount := r.expression(env, at.amount, cel.IntType, &one.amount)
			r.checkKnownFields(d, at.amount, amount, one.info)
			one.info.merge(amount)
		}
		one.digest = digestOfRule(one.Rule)
	}
	r.buildPrograms(env)
	r.rule = ""
	return nil
}

// pendingExpr is a compiled expression and the target of its program.
type pendingExpr struct {
	rule     string
	node     yamldoc.Node
	compiled *cel.Ast
	target   *cel.Program
	partial  bool // whether it uses a field that may be unknown
}

// buildPrograms builds the programs of all compiled expressions. It runs after the last
// compilation, so that the programs are close together in memory: every decision walks through all
// of them.
func (r *loader) buildPrograms(env *cel.Env) {
	for _, e := range r.expressions {
		ready, err := program(env, e.compiled, e.partial, r.patterns)
		if err != nil { // for example an invalid regular expression
			r.rule = e.rule
			e.node.Reportf("%v", err)
			continue
		}
		*e.target = ready
	}
}

// merge adds the analysis of a second expression of a rule. Only the condition determines the
// tools.
func (f *exprInfo) merge(more exprInfo) {
	f.requestFields = append(f.requestFields, more.requestFields...)
	f.argPaths = sets.Union(f.argPaths, more.argPaths)
	f.usesArgs = f.usesArgs || more.usesArgs
	f.counts = append(f.counts, more.counts...)
}

// expression compiles one expression and registers its target. It reports errors and then returns
// an empty result.
func (r *loader) expression(env *cel.Env, node yamldoc.Node, want *cel.Type, place *cel.Program) exprInfo {
	compiled, issues := env.Compile(node.Text())
	if issues.Err() != nil {
		for _, issue := range issues.Errors() {
			node.ReportLinef(lineInFile(node, issue.Location), "%s", withSuggestion(issue.Message))
		}
		return exprInfo{}
	}
	if problem := typeProblem(compiled.OutputType(), want); problem != "" {
		node.Reportf("%s", problem)
		return exprInfo{}
	}
	f := analyze(compiled, r.patterns)
	for _, misuse := range f.misuses {
		at := compiled.NativeRep().SourceInfo().GetStartLocation(misuse.id)
		node.ReportLinef(lineInFile(node, at), "%s", misuse.text)
	}
	if len(f.misuses) > 0 {
		return f // no program: a pattern may be too large to compile
	}
	r.expressions = append(r.expressions, pendingExpr{r.rule, node, compiled, place, f.usesOptionalField()})
	return f
}

// lineInFile returns the line in the file of a location in the text of a value.
func lineInFile(node yamldoc.Node, at common.Location) int {
	return node.TextLine() + max(at.Line(), 1) - 1
}

// typeProblem explains what to write if an expression has the wrong type. An amount may be dyn,
// because it is checked at evaluation. A condition may not: otherwise a rule of the wrong type
// would fail for every action.
func typeProblem(got, want *cel.Type) string {
	switch {
	case got.IsExactType(want), want == cel.IntType && (got.IsExactType(cel.DynType) || got.IsExactType(cel.UintType)):
		return ""
	case got.IsExactType(cel.DynType):
		return "the type is not known; a condition must be a bool: compare it, as in … == true"
	case want == cel.BoolType:
		return fmt.Sprintf("the type is %s; a condition must be a bool", got)
	}
	return fmt.Sprintf("the type is %s; an amount must be a whole number of minor units (cents)", got)
}

var (
	unknownField = regexp.MustCompile(`^undefined field '([^']*)'`)
	unknownName  = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
)

// withSuggestion adds a suggestion to an error message of CEL.
func withSuggestion(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if found := unknownField.FindStringSubmatch(message); found != nil {
		return fmt.Sprintf("unknown field %q%s", found[1], yamldoc.Suggest(found[1], fieldNames()))
	}
	if found := unknownName.FindStringSubmatch(message); found != nil {
		if near := yamldoc.Nearest(found[1], slices.Concat(variables, commonFunctions)); near != "" {
			return fmt.Sprintf("unknown name %q; did you mean %q?", found[1], near)
		}
		return fmt.Sprintf("unknown name %q%s", found[1], yamldoc.Suggest(found[1], variables))
	}
	return message
}

// commonFunctions are the functions that rules use most.
var commonFunctions = []string{
	funcGlob, funcCount, "matches", "startsWith", "endsWith", "contains", "size", "lowerAscii", "upperAscii", "trim", "split",
	"orValue", "has", "all", "exists", "filter", "map", "duration", "timestamp", "int", "string", "double",
}

func fieldNames() []string {
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[request](), reflect.TypeFor[localClock]()} {
		for field := range t.Fields() {
			names = append(names, field.Tag.Get("cel"))
		}
	}
	return names
}

// missingKey matches the key in CEL's message about a missing key.
var missingKey = regexp.MustCompile(`no such key: (\S+)$`)

// ruleErrorText explains why a rule failed, without any argument values. Traces are stored and
// shown to people who may not see the arguments.
func ruleErrorText(err error, source string) string {
	text := err.Error()
	if found := missingKey.FindStringSubmatch(text); found != nil && strings.Contains(source, found[1]) {
		return "missing key " + found[1]
	}
	for _, known := range []struct{ part, say string }{
		{"cost limit", "evaluation cost limit exceeded"},
		{"no such key", "missing key"},
		{"index out of", "list index out of range"},
		{"no such overload", "a value has a different type than the rule expects"},
		{errNoCounter.Error(), errNoCounter.Error()},
		{errUnknownField.Error(), errUnknownField.Error()},
		{"overflow", "number out of range"},
		{"division by zero", "division by zero"},
		{"unknown time zone", "unknown time zone"},
	} {
		if strings.Contains(text, known.part) {
			return known.say
		}
	}
	if wrong, ok := errors.AsType[amountError](err); ok {
		return string(wrong)
	}
	return "evaluation failed"
}
