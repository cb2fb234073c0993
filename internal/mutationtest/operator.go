package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"strings"
)

// An operator switches a safeguard off. It returns the changes to the node that is marked with id.
//
// Most operators keep the original code where it is never executed. So no variable and no import
// becomes unused, and the mutated file compiles.
type operator func(t *tree, id string) ([]change, error)

// change replaces the bytes from begin to end of a file. The positions are those of the file
// without changes.
type change struct {
	file       string
	begin, end int
	text       string
}

func (f *file) replace(from, to token.Pos, text string) change {
	return change{f.path, f.offset(from), f.offset(to), text}
}

// onTarget makes an operator of a function that changes the marked node.
func onTarget(apply func(target) ([]change, error)) operator {
	return func(t *tree, id string) ([]change, error) {
		at, err := t.find(id)
		if err != nil {
			return nil, err
		}
		changes, err := apply(at)
		if err != nil {
			return nil, fmt.Errorf("marker %s: %w", id, err)
		}
		return changes, nil
	}
}

// drop skips the statement.
var drop = onTarget(func(t target) ([]change, error) {
	if _, ok := t.node.(ast.Stmt); !ok {
		return nil, fmt.Errorf("drop: %T is not a statement", t.node)
	}
	return []change{t.replace(t.node.Pos(), t.node.Pos(), "if false {\n"), t.replace(t.node.End(), t.node.End(), "\n}")}, nil
})

// condFalse evaluates the condition of an if, for or case and takes it for false; condTrue takes it
// for true.
var (
	condFalse = and("false")
	condTrue  = or("true")
)

// and adds an operand to the condition of an if, for or case.
func and(operand string) operator { return extend("&&", operand) }

// or adds an alternative to the condition of an if, for or case.
func or(operand string) operator { return extend("||", operand) }

func extend(op, operand string) operator {
	return onTarget(func(t target) ([]change, error) {
		cond, err := t.condition()
		if err != nil {
			return nil, err
		}
		return []change{t.replace(cond.Pos(), cond.Pos(), "("), t.replace(cond.End(), cond.End(), ") "+op+" "+operand)}, nil
	})
}

// condition returns the condition of an if, for or case. Of other nodes it is the first && or ||
// expression.
func (t target) condition() (ast.Expr, error) {
	switch n := t.node.(type) {
	case *ast.IfStmt:
		return n.Cond, nil
	case *ast.ForStmt:
		if n.Cond != nil {
			return n.Cond, nil
		}
	case *ast.CaseClause:
		if len(n.List) == 1 {
			return n.List[0], nil
		}
	default:
		if found := first(t.node, isChain); found != nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%T has no single condition", t.node)
}

func isChain(e *ast.BinaryExpr) bool { return e.Op == token.LAND || e.Op == token.LOR }

// ignore evaluates one operand of the && or || chain that is the condition, and ignores its value.
// Operands are counted from 1. More numbers lead into an operand that is a chain itself.
func ignore(path ...int) operator {
	return onTarget(func(t target) ([]change, error) {
		expr, err := t.condition()
		neutral := ""
		for _, n := range path {
			operands, op := chain(expr)
			if err == nil && (n < 1 || n > len(operands) || len(operands) == 1) {
				err = fmt.Errorf("ignore: the condition has no operand %d", n)
			}
			if err != nil {
				return nil, err
			}
			expr, neutral = operands[n-1], " || true)"
			if op == token.LOR {
				neutral = " && false)"
			}
		}
		return []change{t.replace(expr.Pos(), expr.Pos(), "(("), t.replace(expr.End(), expr.End(), ")"+neutral)}, nil
	})
}

// chain splits an expression at its outermost operator, && or ||.
func chain(e ast.Expr) ([]ast.Expr, token.Token) {
	e = ast.Unparen(e)
	top, ok := e.(*ast.BinaryExpr)
	if !ok || !isChain(top) {
		return []ast.Expr{e}, token.ILLEGAL
	}
	operands := []ast.Expr{top.Y}
	left := top.X
	for {
		next, ok := left.(*ast.BinaryExpr)
		if !ok || next.Op != top.Op {
			return append([]ast.Expr{left}, operands...), top.Op
		}
		operands = append([]ast.Expr{next.Y}, operands...)
		left = next.X
	}
}

// returns makes a return statement return other values.
func returns(values string) operator {
	return onTarget(func(t target) ([]change, error) {
		found := first(t.node, func(*ast.ReturnStmt) bool { return true })
		if found == nil {
			return nil, errors.New("returns: there is no return statement")
		}
		return []change{t.replace(found.Pos(), found.Pos(), "if false {\n"), t.replace(found.End(), found.End(), "\n}\nreturn "+values)}, nil
	})
}

// sets makes an assignment assign another value.
func sets(value string) operator {
	return onTarget(func(t target) ([]change, error) {
		found := first(t.node, func(*ast.AssignStmt) bool { return true })
		if found == nil || len(found.Rhs) != 1 {
			return nil, errors.New("sets: there is no assignment of one value")
		}
		return []change{t.replace(found.Rhs[0].Pos(), found.Rhs[0].End(), value)}, nil
	})
}

// arg replaces an argument of the outermost call. Arguments are counted from 1. An empty text
// removes the argument.
func arg(n int, text string) operator {
	return onTarget(func(t target) ([]change, error) {
		found := first(t.node, func(*ast.CallExpr) bool { return true })
		if found == nil {
			return nil, errors.New("arg: there is no call")
		}
		return t.item(found.Args, n, text)
	})
}

// element replaces an element of the outermost composite literal, or its value if it has a key.
// Elements are counted from 1. An empty text removes the element.
func element(n int, text string) operator {
	return onTarget(func(t target) ([]change, error) {
		found := first(t.node, func(*ast.CompositeLit) bool { return true })
		if found == nil {
			return nil, errors.New("element: there is no composite literal")
		}
		return t.item(found.Elts, n, text)
	})
}

// item replaces or removes an item of a list that is separated by commas.
func (t target) item(list []ast.Expr, n int, text string) ([]change, error) {
	if n < 1 || n > len(list) {
		return nil, fmt.Errorf("there are %d items, and no number %d", len(list), n)
	}
	item := list[n-1]
	switch pair, keyed := item.(*ast.KeyValueExpr); {
	case text != "" && keyed:
		return []change{t.replace(pair.Value.Pos(), pair.Value.End(), text)}, nil
	case text != "":
		return []change{t.replace(item.Pos(), item.End(), text)}, nil
	case n < len(list):
		return []change{t.replace(item.Pos(), list[n].Pos(), "")}, nil
	case n > 1:
		return []change{t.replace(list[n-2].End(), item.End(), "")}, nil
	}
	return []change{t.replace(item.Pos(), item.End(), "")}, nil
}

// before inserts code before the statement, after inserts it behind.
func before(code string) operator {
	return onTarget(func(t target) ([]change, error) {
		return []change{t.replace(t.node.Pos(), t.node.Pos(), code+"\n")}, nil
	})
}

func after(code string) operator {
	return onTarget(func(t target) ([]change, error) {
		return []change{t.replace(t.node.End(), t.node.End(), "\n"+code+"\n")}, nil
	})
}

// swap replaces a text, which must occur exactly once: in the head of an if, for, switch or case,
// and in the whole of other nodes.
func swap(old, text string) operator {
	return onTarget(func(t target) ([]change, error) {
		from, to := t.head()
		at, err := once(t.source(from, to), old)
		if err != nil {
			return nil, err
		}
		begin := t.offset(from) + at
		return []change{{t.path, begin, begin + len(old), text}}, nil
	})
}

// head returns the bounds of a node without its body.
func (t target) head() (from, to token.Pos) {
	switch n := t.node.(type) {
	case *ast.IfStmt:
		return n.Pos(), n.Body.Lbrace
	case *ast.ForStmt:
		return n.Pos(), n.Body.Lbrace
	case *ast.RangeStmt:
		return n.Pos(), n.Body.Lbrace
	case *ast.SwitchStmt:
		return n.Pos(), n.Body.Lbrace
	case *ast.CaseClause:
		return n.Pos(), n.Colon
	}
	return t.node.Pos(), t.node.End()
}

// inMigration replaces a text of a migration, which must occur exactly once. A migration has no
// markers: once released it never changes, because its checksum is stored in every database.
func inMigration(path, old, text string) operator {
	return func(t *tree, _ string) ([]change, error) {
		script, err := t.read(path)
		if err != nil {
			return nil, err
		}
		at, err := once(script, old)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return []change{{path, at, at + len(old), text}}, nil
	}
}

// all applies several operators.
func all(operators ...operator) operator {
	return func(t *tree, id string) ([]change, error) {
		var changes []change
		for _, op := range operators {
			more, err := op(t, id)
			if err != nil {
				return nil, err
			}
			changes = append(changes, more...)
		}
		return changes, nil
	}
}

// at applies an operator at another marker.
func at(id string, op operator) operator {
	return func(t *tree, _ string) ([]change, error) { return op(t, id) }
}

// once returns the offset of a text that must occur exactly once.
func once(text, old string) (int, error) {
	if n := strings.Count(text, old); n != 1 {
		return 0, fmt.Errorf("the text %q occurs %d times, not once", old, n)
	}
	return strings.Index(text, old), nil
}

// first returns the first node of type N below n, n included, that matches; nil if there is none.
func first[N ast.Node](n ast.Node, matches func(N) bool) N {
	var found N
	ast.Inspect(n, func(n ast.Node) bool {
		if one, ok := n.(N); ok && reflect.ValueOf(found).IsNil() && matches(one) {
			found = one
		}
		return reflect.ValueOf(found).IsNil()
	})
	return found
}
