package policy

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"

	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// The fields of req that a file can set for a tool, under tools.
const (
	fieldEffects = "effects"
	fieldCost    = "cost"
	fieldRisk    = "risk"
)

var ratingFields = []string{fieldEffects, fieldCost, fieldRisk}

// anyTool is the rating of all other tools, and the default for fields that a rating omits.
const anyTool = "*"

// maxRisk is the highest risk.
const maxRisk = 3

// Rating is the rating of a tool in a file, as written: values that an action does not define
// itself.
type Rating struct {
	// Effects is nil if it is not set.
	Effects []string `json:"effects,omitempty"`
	// Cost and Risk are expressions.
	Cost string `json:"cost,omitempty"`
	Risk string `json:"risk,omitempty"`
}

// compiledRating is a compiled Rating.
type compiledRating struct {
	Rating
	line    int
	effects []string // nil if not set
	cost    *numberExpr
	risk    *numberExpr
}

// numberExpr is a number that is computed from the arguments of an action.
type numberExpr struct {
	node    yamldoc.Node
	program cel.Program
	max     int64
}

// declares reports whether the rating sets a field of req.
func (w *compiledRating) declares(field string) bool {
	switch field {
	case fieldEffects:
		return w.effects != nil
	case fieldCost:
		return w.cost != nil
	case fieldRisk:
		return w.risk != nil
	}
	return false
}

// parseRatings parses the ratings of tools.
func (r *loader) parseRatings(node yamldoc.Node) map[string]*compiledRating {
	ratings := make(map[string]*compiledRating)
	names, nodes := node.Keys()
	for i, name := range names {
		at := nodes[i]
		checkLabel(at, name)
		fields := at.Map(ratingFields...)
		rating := &compiledRating{line: at.Line(), cost: newNumberExpr(fields[fieldCost], math.MaxInt64), risk: newNumberExpr(fields[fieldRisk], maxRisk)}
		if !fields[fieldEffects].Missing() {
			rating.effects = []string{}
			for _, item := range fields[fieldEffects].List() {
				rating.effects = append(rating.effects, r.label(item))
			}
		}
		rating.Rating = Rating{Effects: rating.effects, Cost: fields[fieldCost].Text(), Risk: fields[fieldRisk].Text()}
		if at.IsMapping() && !slices.ContainsFunc(ratingFields, rating.declares) {
			at.Reportf("the rating is empty: set effects, cost or risk")
		}
		ratings[name] = rating
	}
	return ratings
}

// newNumberExpr returns the expression at a node, or nil if there is none.
func newNumberExpr(node yamldoc.Node, most int64) *numberExpr {
	if node.Missing() {
		return nil
	}
	if plain, err := strconv.ParseInt(node.Text(), 10, 64); err == nil && (plain < 0 || plain > most) {
		node.Reportf("%d is not between 0 and %d", plain, most)
	}
	return &numberExpr{node: node, max: most}
}

// compileRatings compiles the ratings and applies the rating of all other tools as default.
func (r *loader) compileRatings(env *cel.Env, ratings map[string]*compiledRating) {
	for _, rating := range ratings {
		r.compileNumberExpr(env, rating.cost)
		r.compileNumberExpr(env, rating.risk)
	}
	if rest := ratings[anyTool]; rest != nil {
		for _, rating := range ratings {
			rating.cost, rating.risk = cmp.Or(rating.cost, rest.cost), cmp.Or(rating.risk, rest.risk)
			if rating.effects == nil {
				rating.effects = rest.effects
			}
		}
	}
}

func (r *loader) compileNumberExpr(env *cel.Env, n *numberExpr) {
	if n == nil {
		return
	}
	if f := r.expression(env, n.node, cel.IntType, &n.program); f.usesOptionalField() || len(f.counts) > 0 {
		n.node.Reportf("the expression must use only the arguments, not effects, cost, risk, revision or history")
	}
}

// ratingFor returns the rating of a tool, or nil.
func ratingFor(ratings map[string]*compiledRating, tool string) *compiledRating {
	return cmp.Or(ratings[tool], ratings[anyTool])
}

// checkKnownFields checks that an expression uses no field that is always unknown: not set by the
// caller, and not rated for any tool of the rule.
func (r *loader) checkKnownFields(d *document, node yamldoc.Node, looked, rule exprInfo) {
	for _, field := range sets.Intersect(r.unknownFields, looked.requestFields) {
		known := rule.tools == nil && slices.ContainsFunc(slices.Collect(maps.Values(d.ratings)), func(w *compiledRating) bool { return w.declares(field) })
		for _, tool := range rule.tools {
			rating := ratingFor(d.ratings, tool)
			known = known || rating != nil && rating.declares(field)
		}
		switch {
		case known:
		case slices.Contains(ratingFields, field):
			node.Reportf(`req.%s is never set here, so the rule would always fail: rate the tools under "tools"`, field)
		default:
			node.Reportf("req.%s is never set here, so the rule would always fail", field)
		}
	}
}

// Ratings returns the ratings of the file by tool. "*" is for all other tools and for omitted
// fields.
func (s *Set) Ratings() map[string]Rating {
	said := make(map[string]Rating, len(s.ratings))
	for name, rating := range s.ratings {
		said[name] = rating.Rating
	}
	return said
}

// ratingOf returns the rating of the tool of an action, or nil. A question that a tool asks is not
// the action of the tool.
func (s *Set) ratingOf(in Input) *compiledRating {
	if !in.isAction() {
		return nil
	}
	return ratingFor(s.ratings, in.Tool)
}

// WithRating returns the input as the rules see it, with the rating of the tool. The file overrides
// the input, because the operator rates the tools.
func (s *Set) WithRating(in Input) Input {
	rating := s.ratingOf(in)
	if rating == nil {
		return in
	}
	values, err := in.values()
	if err != nil {
		return in // Decide will reject the input
	}
	vars, err := s.vars(&in, values)
	if err != nil {
		return in
	}
	rating.apply(&in, vars)
	return in
}

// apply sets the rating in an input and returns the evaluation cost. A field that cannot be
// computed becomes unknown, even if the input had a value.
func (w *compiledRating) apply(in *Input, vars cel.Activation) (spent uint64) {
	in.UnknownFields = slices.DeleteFunc(slices.Clone(in.UnknownFields), w.declares)
	if w.effects != nil {
		in.Effects = slices.Clone(w.effects)
	}
	if w.cost != nil {
		in.Cost, spent = w.cost.eval(in, fieldCost, vars)
	}
	if w.risk != nil {
		risk, more := w.risk.eval(in, fieldRisk, vars)
		in.Risk, spent = int(risk), spent+more
	}
	return spent
}

func (n *numberExpr) eval(in *Input, field string, vars cel.Activation) (value int64, spent uint64) {
	found, details, err := n.program.Eval(vars)
	if cost := details.ActualCost(); cost != nil {
		spent = *cost
	}
	if err == nil {
		value, err = toInteger(found)
	}
	if err != nil || value < 0 || value > n.max {
		in.UnknownFields = append(in.UnknownFields, field) //mutate:unknown-cost
		return 0, spent
	}
	return value, spent
}
