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
func (r *reading) compile(d *document) error {
	env, err := environment()
	if err != nil {
		return err
	}
	r.compileTools(env, d.tools)
	for _, one := range d.rules {
		r.rule = one.ID
		at := d.places[one]
		if strings.TrimSpace(one.When) != "" {
			one.facts = r.expression(env, at.when, "when", cel.BoolType, &one.when)
			r.told(d, at.when, "when", one.facts, one.facts)
		}
		if !at.amount.Missing() {
			amount := r.expression(env, at.amount, "amount", cel.IntType, &one.amount)
			r.told(d, at.amount, "amount", amount, one.facts)
			one.facts.add(amount)
		}
		one.digest = digestOfRule(one.Rule)
	}
	r.programs(env)
	r.rule = ""
	return nil
}

// expression is one that was compiled, and where its program belongs.
type expression struct {
	rule, what string
	node       yamldoc.Node
	compiled   *cel.Ast
	place      *cel.Program
	guesses    bool // whether it looks at what may be untold
}

// programs makes the expressions ready to be evaluated. It does so after the last was compiled: in between the programs would lie far apart in
// memory, and every decision walks through all of them.
func (r *reading) programs(env *cel.Env) {
	for _, e := range r.expressions {
		ready, err := program(env, e.compiled, e.guesses)
		if err != nil { // a pattern that is none
			r.rule = e.rule
			e.node.Wrong("%s: %v", e.what, err)
			continue
		}
		*e.place = ready
	}
}

// add joins what two expressions of a rule look at. Which tools it is for is the condition's word alone.
func (f *facts) add(more facts) {
	f.uses = append(f.uses, more.uses...)
	f.paths = union(f.paths, more.paths)
	f.args = f.args || more.args
	f.counts = append(f.counts, more.counts...)
}

// expression compiles one text, whose program goes to a place. It reports what is wrong, and then knows nothing of it.
func (r *reading) expression(env *cel.Env, node yamldoc.Node, what string, want *cel.Type, place *cel.Program) facts {
	compiled, issues := env.Compile(node.Text())
	if issues.Err() != nil {
		for _, issue := range issues.Errors() {
			r.Report(line(node, issue.Location), fmt.Sprintf("%s: %s", what, withNearest(issue.Message)))
		}
		return facts{}
	}
	if problem := typeProblem(compiled.OutputType(), want); problem != "" {
		node.Wrong("%s: %s", what, problem)
		return facts{}
	}
	f := factsOf(compiled)
	for _, misuse := range f.wrong {
		at := compiled.NativeRep().SourceInfo().GetStartLocation(misuse.id)
		r.Report(line(node, at), fmt.Sprintf("%s: %s", what, misuse.text))
	}
	r.expressions = append(r.expressions, expression{r.rule, what, node, compiled, place, f.mayBeUntold()})
	return f
}

// line is the line in the file of a place in the text of a value.
func line(node yamldoc.Node, at common.Location) int {
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

// withNearest adds to CEL's messages what was probably meant.
func withNearest(message string) string {
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
	for _, t := range []reflect.Type{reflect.TypeFor[request](), reflect.TypeFor[clockTime]()} {
		for field := range t.Fields() {
			names = append(names, field.Tag.Get("cel"))
		}
	}
	return names
}

// keyOf finds the key in CEL's message about one that is missing.
var keyOf = regexp.MustCompile(`no such key: (\S+)$`)

// plainError says why a rule could not be judged, without any value of the arguments: traces are stored and shown to
// people who may not see those.
func plainError(err error, source string) string {
	text := err.Error()
	if found := keyOf.FindStringSubmatch(text); found != nil && strings.Contains(source, found[1]) {
		return "there is no " + found[1]
	}
	for _, known := range []struct{ part, say string }{
		{"cost limit", "it costs too much to judge"},
		{"no such key", "a key is missing"},
		{"index out of", "a list is too short"},
		{"no such overload", "a value is of another type than the rule expects"},
		{errNoNumber.Error(), errNoNumber.Error()},
		{errUntold.Error(), errUntold.Error()},
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
