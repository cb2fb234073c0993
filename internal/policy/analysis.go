package policy

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"github.com/fermata-go/fermata/internal/sets"
)

// exprInfo is the static analysis of an expression.
type exprInfo struct {
	// tools are the only tools for which the condition can be anything but false. Nil means
	// unknown.
	tools []string
	// kinds are the only kinds of requests for which it can be anything but false. Nil means
	// unknown.
	kinds []string
	// conjuncts are the operands of the outermost &&, as text.
	conjuncts []string
	// requestFields are the fields of req that are used. argPaths are the used paths of args, as
	// JSON pointers.
	requestFields, argPaths []string
	usesArgs                bool // whether args is used
	requestRefs             int  // how often req is used, for one of its fields or as a whole
	counts                  []queryTemplate
	misuses                 []misuse
}

// misuse is a call that CEL accepts but policies do not.
type misuse struct {
	id   int64
	text string
}

func analyze(compiled *cel.Ast, patterns *patternSizes) exprInfo {
	tree := compiled.NativeRep()
	var f exprInfo
	if tools, bound := valuesOf("tool", tree.Expr()); bound {
		f.tools = tools
	}
	if kinds, bound := valuesOf("kind", tree.Expr()); bound {
		f.kinds = kinds
	}
	for _, part := range conjuncts(tree.Expr()) {
		text, err := parser.Unparse(part, tree.SourceInfo())
		if err != nil {
			text = fmt.Sprintf("(part %d)", part.ID())
		}
		f.conjuncts = append(f.conjuncts, text)
	}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) { f.inspect(tree, e, patterns) }))
	slices.Sort(f.argPaths)
	f.argPaths = slices.Compact(f.argPaths)
	return f
}

func (f *exprInfo) inspect(tree *ast.AST, e ast.Expr, patterns *patternSizes) {
	switch e.Kind() {
	case ast.IdentKind:
		f.usesArgs = f.usesArgs || e.AsIdent() == varArgs
		if e.AsIdent() == varRequest {
			f.requestRefs++
		}
	case ast.SelectKind:
		if operand := e.AsSelect().Operand(); operand.Kind() == ast.IdentKind && operand.AsIdent() == varRequest {
			f.requestFields = append(f.requestFields, e.AsSelect().FieldName())
		}
	case ast.CallKind:
		f.checkCall(tree, e, patterns)
	}
	if path, ok := argPath(e); ok && path != "" {
		f.argPaths = append(f.argPaths, path)
	}
}

// usesOptionalField reports whether the expression can depend on a field of [Input.UnknownFields],
// directly or by the whole request.
func (f exprInfo) usesOptionalField() bool {
	return f.requestRefs > len(f.requestFields) || len(sets.Intersect(f.requestFields, OptionalFields)) > 0
}

// checkCall checks calls whose arguments must be literals.
func (f *exprInfo) checkCall(tree *ast.AST, e ast.Expr, patterns *patternSizes) {
	call := e.AsCall()
	name, args := call.FunctionName(), call.Args()
	wrong := func(format string, args ...any) {
		f.misuses = append(f.misuses, misuse{e.ID(), fmt.Sprintf(format, args...)})
	}
	switch {
	case slices.Contains(forbiddenFunctions, name):
		wrong("%s is not allowed in rules, because it builds new texts", name)
	case slices.Contains(literalPatternFunctions, name):
		needle := 0
		if !call.IsMemberFunction() {
			needle = 1
		}
		pattern, ok := literal(args[needle])
		if !ok {
			wrong("%s needs a literal pattern, because a pattern from the arguments could take too long", name)
		} else if name == "matches" {
			if problem := patterns.addPattern(pattern); problem != "" {
				wrong("%s", problem)
			}
		}
	case slices.Contains(literalListFunctions, name):
		if args[0].Kind() != ast.ListKind && args[1].Kind() != ast.ListKind {
			wrong("%s needs at least one literal list, because two lists from the arguments could take too long", name)
		}
	case name == funcCount && call.IsMemberFunction() && tree.GetType(call.Target().ID()).String() == historyType.String():
		f.addCount(args, wrong)
	case name == funcLocal && call.IsMemberFunction():
		zone, ok := literal(args[0])
		if !ok {
			wrong(`now.local needs a literal zone, as in now.local("Asia/Singapore")`)
		} else if _, err := loadZone(zone); err != nil {
			wrong("unknown time zone %q", zone)
		}
	}
}

func (f *exprInfo) addCount(args []ast.Expr, wrong func(string, ...any)) {
	by, ok := literal(args[0])
	window, good := literal(args[1])
	if !ok || !good {
		wrong(`history.count needs literal arguments, as in history.count("tool", "1h"), because counters are read before the evaluation`)
		return
	}
	s, err := parseCountCall(by, window)
	if err != nil {
		wrong("history.count: %v", err)
		return
	}
	f.counts = append(f.counts, s)
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// conjuncts returns the operands of the outermost &&.
func conjuncts(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
		var parts []ast.Expr
		for _, part := range e.AsCall().Args() {
			parts = append(parts, conjuncts(part)...)
		}
		return parts
	}
	return []ast.Expr{e}
}

// valuesOf returns the values of a text field of req for which e can be anything but false. In CEL,
// false && x is false even if x is an error. So one conjunct that names the value is sufficient, at
// any position.
func valuesOf(field string, e ast.Expr) (values []string, bound bool) {
	if e.Kind() != ast.CallKind {
		return nil, false
	}
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.Equals:
		return equalsValue(field, call.Args()[0], call.Args()[1])
	case operators.In:
		if !isRequestField(field, call.Args()[0]) || call.Args()[1].Kind() != ast.ListKind {
			return nil, false
		}
		values = []string{}
		for _, element := range call.Args()[1].AsList().Elements() {
			value, ok := literal(element)
			if !ok {
				return nil, false
			}
			values = append(values, value)
		}
		return values, true
	case operators.LogicalAnd:
		for _, part := range call.Args() {
			more, ok := valuesOf(field, part)
			switch {
			case ok && !bound:
				values, bound = more, true
			case ok:
				values = slices.DeleteFunc(values, func(value string) bool { return !slices.Contains(more, value) })
			}
		}
		return values, bound
	case operators.LogicalOr:
		values = []string{}
		for _, part := range call.Args() {
			more, ok := valuesOf(field, part)
			if !ok {
				return nil, false
			}
			values = sets.Union(values, more)
		}
		return values, true
	}
	return nil, false
}

func equalsValue(field string, a, b ast.Expr) ([]string, bool) {
	if isRequestField(field, b) {
		a, b = b, a
	}
	value, ok := literal(b)
	if !ok || !isRequestField(field, a) {
		return nil, false
	}
	return []string{value}, true
}

func isRequestField(field string, e ast.Expr) bool {
	if e.Kind() != ast.SelectKind || e.AsSelect().FieldName() != field {
		return false
	}
	operand := e.AsSelect().Operand()
	return operand.Kind() == ast.IdentKind && operand.AsIdent() == varRequest
}

// argPath returns the JSON pointer of args.a["b"][?"c"], up to the first step that is not a
// literal.
func argPath(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return "", e.AsIdent() == varArgs
	case ast.SelectKind:
		above, ok := argPath(e.AsSelect().Operand())
		return above + "/" + escapePointer(e.AsSelect().FieldName()), ok
	case ast.CallKind:
		call := e.AsCall()
		if name := call.FunctionName(); name != operators.Index && name != operators.OptIndex && name != operators.OptSelect {
			return "", false
		}
		above, ok := argPath(call.Args()[0])
		step, plain := literal(call.Args()[1])
		return above + "/" + escapePointer(step), ok && plain
	}
	return "", false
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(step string) string { return pointerEscapes.Replace(step) }
