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

	"github.com/fermata-go/fermata/policy/internal/yamldoc"
)

// compile makes all expressions ready, and reports what is wrong with them.
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
			one.info = r.expression(env, at.when, "when", cel.BoolType, &one.when)
			r.checkKnownFields(d, at.when, "when", one.info, one.info)
		}
		if !at.amount.Missing() {
			amount := r.expression(env, at.amount, "amount", cel.IntType, &one.amount)
			r.checkKnownFields(d, at.amount, "amount", amount, one.info)
			one.info.merge(amount)
		}
		one.digest = digestOfRule(one.Rule)
	}
	r.buildPrograms(env)
	r.rule = ""
	return nil
}

// pendingExpr is one that was compiled, and where its program belongs.
type pendingExpr struct {
	rule, what string
	node       yamldoc.Node
	compiled   *cel.Ast
	target     *cel.Program
	partial    bool // whether it looks at what may be untold
}

// programs makes the expressions ready to be evaluated. It does so after the last was compiled: in between the programs would lie far apart in
// memory, and every decision walks through all of them.
func (r *loader) buildPrograms(env *cel.Env) {
	for _, e := range r.expressions {
		ready, err := program(env, e.compiled, e.partial)
		if err != nil { // a pattern that is none
			r.rule = e.rule
			e.node.Reportf("%s: %v", e.what, err)
			continue
		}
		*e.target = ready
	}
}

// add joins what two expressions of a rule look at. Which tools it is for is the condition's word alone.
func (f *exprInfo) merge(more exprInfo) {
	f.requestFields = append(f.requestFields, more.requestFields...)
	f.argPaths = union(f.argPaths, more.argPaths)
	f.usesArgs = f.usesArgs || more.usesArgs
	f.counts = append(f.counts, more.counts...)
}

// pendingExpr compiles one text, whose program goes to a place. It reports what is wrong, and then knows nothing of it.
func (r *loader) expression(env *cel.Env, node yamldoc.Node, what string, want *cel.Type, place *cel.Program) exprInfo {
	compiled, issues := env.Compile(node.Text())
	if issues.Err() != nil {
		for _, issue := range issues.Errors() {
			r.Report(lineInFile(node, issue.Location), fmt.Sprintf("%s: %s", what, withSuggestion(issue.Message)))
		}
		return exprInfo{}
	}
	if problem := typeProblem(compiled.OutputType(), want); problem != "" {
		node.Reportf("%s: %s", what, problem)
		return exprInfo{}
	}
	f := analyze(compiled)
	for _, misuse := range f.misuses {
		at := compiled.NativeRep().SourceInfo().GetStartLocation(misuse.id)
		r.Report(lineInFile(node, at), fmt.Sprintf("%s: %s", what, misuse.text))
	}
	r.expressions = append(r.expressions, pendingExpr{r.rule, what, node, compiled, place, f.usesOptionalField()})
	return f
}

// lineInFile is the line in the file of a place in the text of a value.
func lineInFile(node yamldoc.Node, at common.Location) int {
	return node.TextLine() + max(at.Line(), 1) - 1
}

// typeProblem says what to write where an expression is of another type. An amount may be dyn: it is checked when it is
// known. A condition may not: a rule that turns out to be a text would be an error with every action.
func typeProblem(got, want *cel.Type) string {
	switch {
	case got.IsExactType(want), want == cel.IntType && (got.IsExactType(cel.DynType) || got.IsExactType(cel.UintType)):
		return ""
	case got.IsExactType(cel.DynType):
		return "this may come to anything; a condition has to be true or false: compare it, as in … == true"
	case want == cel.BoolType:
		return fmt.Sprintf("this is of type %s; a condition has to be true or false", got)
	}
	return fmt.Sprintf("this is of type %s; an amount is a whole number of minor units (cents)", got)
}

var (
	unknownField = regexp.MustCompile(`^undefined field '([^']*)'`)
	unknownName  = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
)

// withSuggestion adds to CEL's messages what was probably meant.
func withSuggestion(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if found := unknownField.FindStringSubmatch(message); found != nil {
		return fmt.Sprintf("there is no field %q%s", found[1], yamldoc.Suggest(found[1], fieldNames()))
	}
	if found := unknownName.FindStringSubmatch(message); found != nil {
		if near := yamldoc.Nearest(found[1], slices.Concat(variables, commonFunctions)); near != "" {
			return fmt.Sprintf("there is no %q; did you mean %q?", found[1], near)
		}
		return fmt.Sprintf("there is no %q%s", found[1], yamldoc.Suggest(found[1], variables))
	}
	return message
}

// commonFunctions are the functions that rules mostly want.
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

// missingKey finds the key in CEL's message about one that is missing.
var missingKey = regexp.MustCompile(`no such key: (\S+)$`)

// ruleErrorText says why a rule could not be judged, without any value of the arguments: traces are stored and shown to
// people who may not see those.
func ruleErrorText(err error, source string) string {
	text := err.Error()
	if found := missingKey.FindStringSubmatch(text); found != nil && strings.Contains(source, found[1]) {
		return "there is no " + found[1]
	}
	for _, known := range []struct{ part, say string }{
		{"cost limit", "it costs too much to judge"},
		{"no such key", "a key is missing"},
		{"index out of", "a list is too short"},
		{"no such overload", "a value is of another type than the rule expects"},
		{errNoCounter.Error(), errNoCounter.Error()},
		{errUnknownField.Error(), errUnknownField.Error()},
		{"overflow", "a number is too large"},
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
	return "it cannot be judged"
}
