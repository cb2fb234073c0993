package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// maxCondition is the maximum size of a condition, in bytes.
const maxCondition = 10_000

// Condition is a compiled condition of one approval: a CEL expression with the variables, functions
// and cost limits of rules, except for history and facts. It can be used by several goroutines.
type Condition struct {
	source  string
	program cel.Program
	// paths are the arguments that it reads, as JSON pointers; all says that it may read any.
	paths []string
	all   bool
}

// Reads reports whether the condition may read an argument, or a part of it, by its JSON pointer.
func (c *Condition) Reads(overlaps func(pointer string) bool) bool {
	return c.all || slices.ContainsFunc(c.paths, overlaps)
}

// ErrConditionFalse means that a [Condition] does not hold.
var ErrConditionFalse = errors.New("the condition is false")

// CompileCondition compiles a condition. The error explains what is wrong with it.
func CompileCondition(source string) (*Condition, error) {
	if len(source) > maxCondition {
		return nil, fmt.Errorf("the condition has %d bytes; %d are allowed", len(source), maxCondition)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	compiled, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, errors.New(withSuggestion(issues.Errors()[0].Message))
	}
	if wrong := typeProblem(compiled.OutputType(), cel.BoolType); wrong != "" {
		return nil, errors.New(wrong)
	}
	patterns := &patternSizes{sizes: make(map[string]int)}
	info := analyze(compiled, patterns)
	for _, name := range []string{varHistory, varFacts} { // facts would answer guesses of approvers
		if usesVariable(compiled, name) {
			return nil, errors.New(name + " is not available in the condition of an approval")
		}
	}
	if len(info.misuses) > 0 {
		return nil, errors.New(info.misuses[0].text)
	}
	ready, err := program(env, compiled, info.usesOptionalField(), patterns)
	if err != nil {
		return nil, err
	}
	c := &Condition{source: source, program: ready}
	c.paths, c.all = argsRead(compiled.NativeRep().Expr())
	return c, nil
}

// argsRead returns the longest constant paths of args that an expression reads, or all of args.
func argsRead(e ast.Expr) (paths []string, all bool) {
	part := make(map[int64]bool) // of a longer path
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		path, ok := argPath(e)
		all = all || e.Kind() == ast.IdentKind && e.AsIdent() == varData || ok && path == "" && !part[e.ID()]
		if !ok || path == "" {
			return
		}
		if !part[e.ID()] {
			paths = append(paths, path)
		}
		if e.Kind() == ast.SelectKind {
			part[e.AsSelect().Operand().ID()] = true
		} else {
			part[e.AsCall().Args()[0].ID()] = true
		}
	}))
	return paths, all
}

func usesVariable(compiled *cel.Ast, name string) bool {
	found := false
	ast.PreOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() == name
	}))
	return found
}

// Check returns nil if the condition holds for the input, [ErrConditionFalse] if it does not, and
// another error if it cannot be evaluated, for example because an argument is missing. Errors have
// no argument values. set rates the tool and has the default time zone; it may be nil.
func (c *Condition) Check(ctx context.Context, set *Set, in Input) error {
	if err := stopped(ctx); err != nil {
		return err
	}
	zone := ""
	if set != nil {
		in, zone = set.WithRating(in), set.zone
	}
	in.UnknownFields = slices.DeleteFunc(slices.Clone(in.UnknownFields), in.hasValue)
	values, err := in.values()
	if err != nil {
		return err
	}
	vars, err := activationOf(&in, values, zone)
	if err != nil {
		return err
	}
	j := &evaluation{ctx: ctx, vars: vars}
	value, err := j.eval(c.program, &Trace{})
	switch {
	case err == nil && value == types.True:
		return nil
	case err == nil:
		return ErrConditionFalse
	case stopped(ctx) != nil:
		return stopped(ctx)
	}
	return fmt.Errorf("the condition cannot be evaluated: %s", ruleErrorText(err, c.source))
}
